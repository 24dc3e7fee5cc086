// Report for a terminal.
#include <fmt/format.h>

#include "core/base/number.h"
#include "tools/bench/program/report.h"

namespace dtrun::bench {
namespace {

// Three significant digits.
std::string Number(double value) {
  if (value > 0 && value < 0.001) return fmt::format("{:.2e}", value);
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.{}f}", value, value >= 0.1 || value == 0 ? 2 : 4);
}

}  // namespace

std::string HeaderText(const Report& report) {
  const Host& host = report.host;
  std::string what = OperationName(report.operation);
  if (report.operation != Operation::kBarrier) what += fmt::format(" of {}", report.element.name);
  std::string out = fmt::format(
      "dtrun {} bench: {}, {} rank{}, {} round{}, about {:.3g} s\n  {} on {} core{} of {}, kernel {}, load "
      "{:.2f}\n",
      DTRUN_VERSION, what, report.ranks, report.ranks == 1 ? "" : "s", report.rounds,
      report.rounds == 1 ? "" : "s", report.seconds, report.started, host.cores, host.cores == 1 ? "" : "s",
      host.processor, host.kernel, host.load);
  for (const Column& column : report.columns) {
    out += column.started ? fmt::format("  {:<18} {}; joined in {} ms\n", column.name, column.description,
                                        Number(column.joining * 1e3))
                          : fmt::format("  {:<18} skipped, because {}\n", column.name, column.failure);
  }
  return out;
}

std::string TableHead() {
  return fmt::format("{:>10}  {:<18} {:>9} {:>9} {:>9} {:>7} {:>10} {:>10} {:>8}\n", "bytes", "layer",
                     "min us", "median us", "p99 us", "samples", "algbw GB/s", "busbw GB/s", "E");
}

std::string TableRow(const Report& report, const Cell& cell) {
  const bool moves = cell.shape.bytes > 0;
  return fmt::format("{:>10}  {:<18} {:>9} {:>9} {:>9} {:>7} {:>10} {:>10} {:>8}\n",
                     moves ? FormatBytes(cell.shape.bytes) : "-", report.columns[cell.column].name,
                     Number(cell.time.min / 1e3), Number(cell.time.median / 1e3), Number(cell.time.p99 / 1e3),
                     cell.time.samples, moves ? Number(cell.algbw) : "-", moves ? Number(cell.busbw) : "-",
                     cell.efficiency ? Number(*cell.efficiency) : "-");
}

std::string FooterText(const Report& report) {
  std::string out;
  for (const Column& column : report.columns) {
    if (column.started && !column.failure.empty())
      out += fmt::format("{} has no figures from some size on: {}\n", column.name, column.failure);
  }
  for (const std::string& wrong : report.wrong) out += fmt::format("wrong result: {}\n", wrong);
  if (report.took > 0) {
    const bool longer = report.took > 2 * report.seconds + 1;
    out += fmt::format("{} row{} in {:.1f} s{}\n", report.cells.size(), report.cells.size() == 1 ? "" : "s",
                       report.took,
                       longer ? fmt::format(" of about {:.3g} s: every layer is started, and every size "
                                            "checked and warmed up; name fewer --sizes, --backend or --peers",
                                            report.seconds)
                              : "");
  }
  return out;
}

}  // namespace dtrun::bench

// Report as JSON.
#include "core/base/json.h"

#include "tools/bench/program/report.h"

namespace dtrun::bench {

std::string ToJson(const Report& report) {
  const Host& host = report.host;
  Json out = {{"dtrun", DTRUN_VERSION},
              {"started", report.started},
              {"operation", OperationName(report.operation)},
              {"dtype", report.element.name},
              {"ranks", report.ranks},
              {"rounds", report.rounds},
              {"host",
               {{"name", host.name},
                {"processor", host.processor},
                {"cores", host.cores},
                {"kernel", host.kernel},
                {"load", host.load},
                {"busy", host.busy()}}}};
  out["layers"] = Json::array();
  for (const Column& column : report.columns) {
    Json layer = {{"name", column.name}, {"description", column.description}, {"started", column.started}};
    layer["joining_s"] = column.started ? Json(column.joining) : Json();
    layer["failure"] = column.failure.empty() ? Json() : Json(column.failure);
    out["layers"].push_back(std::move(layer));
  }
  out["results"] = Json::array();
  for (const Cell& cell : report.cells) {
    Json row = {{"layer", report.columns[cell.column].name},
                {"bytes", cell.shape.bytes},
                {"count", cell.shape.count},
                {"min_us", cell.time.min / 1e3},
                {"median_us", cell.time.median / 1e3},
                {"p99_us", cell.time.p99 / 1e3},
                {"samples", cell.time.samples},
                {"algbw_gb_s", cell.algbw},
                {"busbw_gb_s", cell.busbw}};
    row["efficiency"] = cell.efficiency ? Json(*cell.efficiency) : Json();
    out["results"].push_back(std::move(row));
  }
  out["wrong"] = report.wrong;
  return JsonDocument(1, out);
}

}  // namespace dtrun::bench

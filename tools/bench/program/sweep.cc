#include "tools/bench/program/sweep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>

#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "tools/bench/program/report.h"
#include "tools/bench/program/session.h"

namespace dtrun::bench {
namespace {

constexpr int kFailed = 1;

void Complain(const std::string& text) { PrintMessage("dtrun: bench: {}\n", text); }

class Run {
 public:
  Run(const Request& request, process::Lifeline& lifeline)
      : request_(request), session_(lifeline, lifeline.runtime_dir(), request.ranks) {
    report_.operation = request.operation;
    report_.element = request.element;
    report_.ranks = request.ranks;
    report_.rounds = request.rounds;
    report_.seconds = request.seconds;
    report_.host = ThisHost();
    report_.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    layers_ = PlanLayers(request, Programs::Find(), lifeline.runtime_dir());
  }

  int Do() {
    if (report_.host.busy()) {
      Complain(
          fmt::format("warning: the load is {:.2f} on {} cores before the start; other programs here will "
                      "show in the figures",
                      report_.host.load, report_.host.cores));
    }
    if (Status fits = CheckMemory(); !fits) return Complain(fits.error().text), kUserError;
    if (Status listening = session_.Listen(); !listening) return Complain(listening.error().text), kFailed;
    for (const Layer& layer : layers_) {
      StartLayer(layer);
      if (session_.signal() != 0) return 128 + session_.signal();
    }
    PrintOutput("{}\n{}", HeaderText(report_), TableHead());
    (void)FlushOutput();  // main reports a failure at its end
    for (const Shape& shape : request_.shapes) {
      MeasureSize(shape);
      if (session_.signal() != 0) return 128 + session_.signal();
    }
    report_.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    const std::string footer = FooterText(report_);
    if (!footer.empty()) WriteMessage(footer);
    return WriteFiles();
  }

 private:
  // The source of a column of the report, by the same index.
  struct Source {
    Session::Running* layer;
    Operation operation;
    bool registered, ours;
  };
  // A column's state within one size.
  struct Progress {
    bool ready = false;
    Batch batch;
    std::vector<double> samples;
  };

  Status CheckMemory() const {
    const std::uint64_t needed = BufferBytes(request_, layers_), free = report_.host.available_bytes;
    if (free == 0 || needed < free / 10 * 9) return {};
    return Error{
        DTRUN_OUT_OF_MEMORY,
        fmt::format("{:.1f} GiB of buffers for {} layers of {} ranks do not fit the {:.1f} GiB of memory "
                    "that are available; give smaller --sizes, or fewer --backend and --peers",
                    static_cast<double>(needed) / (1 << 30), layers_.size(), request_.ranks,
                    static_cast<double>(free) / (1 << 30))};
  }

  void StartLayer(const Layer& layer) {
    Result<Session::Running*> running =
        layer.absent.empty() ? session_.Start(layer) : Error{DTRUN_FAILED_PRECONDITION, layer.absent};
    for (const bool registered : running.ok() ? layer.registered : std::vector<bool>{false}) {
      Column column;
      column.name = layer.name + (registered ? " registered" : "");
      column.started = running.ok();
      if (running.ok()) {
        column.description = (*running)->description;
        column.joining = (*running)->joining;
      } else {
        column.failure = running.error().text;
      }
      report_.columns.push_back(std::move(column));
      const bool peer = layer.name.rfind("raw-", 0) == 0 || layer.name == "torch-gloo";
      sources_.push_back({running.ok() ? *running : nullptr, layer.operation, registered, !peer});
    }
  }

  bool Usable(std::size_t column) const {
    return sources_[column].layer != nullptr && report_.columns[column].failure.empty();
  }

  const char* BuffersOf(std::size_t column) const {
    return sources_[column].registered ? "registered" : "private";
  }

  // The layer of `column` has failed: drops all its columns.
  void Drop(std::size_t column, const std::string& why) {
    Session::Running* layer = sources_[column].layer;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].layer == layer && report_.columns[i].failure.empty()) report_.columns[i].failure = why;
    }
    session_.Stop(*layer);
    failed_ = failed_ || sources_[column].ours;
  }

  // The answers; nullopt after a failure, which is recorded.
  std::optional<std::vector<std::string>> Ask(std::size_t column, const std::string& line) {
    auto answers = session_.Ask(*sources_[column].layer, line);
    if (answers) return *std::move(answers);
    if (session_.signal() == 0) Drop(column, answers.error().text);
    return std::nullopt;
  }

  // Nanoseconds of each sample, by rank.
  std::optional<std::vector<double>> Time(std::size_t column, int warmup, const Batch& batch) {
    const auto answers = Ask(
        column, fmt::format("run {} {} {} {}", BuffersOf(column), warmup, batch.samples, batch.iterations));
    if (!answers) return std::nullopt;
    std::vector<std::vector<double>> ranks;
    for (const std::string& answer : *answers) {
      std::istringstream words(answer);
      std::string times;
      words >> times;
      std::vector<double> samples(batch.samples);
      for (double& sample : samples) words >> sample;
      if (times != "times" || !words) {
        Drop(column, fmt::format("a rank answered '{}' to a request for {} times", answer, batch.samples));
        return std::nullopt;
      }
      ranks.push_back(std::move(samples));
    }
    return SlowestOf(ranks);
  }

  // Nanoseconds per turn of a column.
  double Slot() const {
    constexpr double kLongest = 10e9;  // far below the session's timeout
    const double turns =
        static_cast<double>(request_.shapes.size()) * static_cast<double>(sources_.size()) * request_.rounds;
    return std::min(request_.seconds * 1e9 / turns, kLongest);
  }

  // Prepares buffers, checks one call, and determines the length of the batches.
  bool Prepare(std::size_t column, const Shape& shape, Batch* batch) {
    const std::string prepare =
        fmt::format("prepare {} {} {} {}", BuffersOf(column), OperationName(sources_[column].operation),
                    request_.element.name, shape.bytes);
    for (const std::string& request : {prepare, fmt::format("check {}", BuffersOf(column))}) {
      const auto answers = Ask(column, request);
      if (!answers) return false;
      for (const std::string& answer : *answers) {
        if (answer == "ok") continue;
        if (answer.rfind("unsupported ", 0) == 0) {
          report_.columns[column].failure = answer.substr(12);
          return false;
        }
        Drop(column, "its results are wrong");
        report_.wrong.push_back(fmt::format("{}, {}: {}", report_.columns[column].name,
                                            FormatBytes(shape.bytes), answer.substr(answer.find(' ') + 1)));
        return false;
      }
    }
    const auto once = Time(column, request_.warmup, {1, 1});
    if (!once) return false;
    const auto again = Time(column, 0, BatchFor(1e6, once->front()));
    if (!again) return false;
    *batch = BatchFor(Slot(), Summarise(*again).median);
    return true;
  }

  void MeasureSize(const Shape& shape) {
    std::vector<Progress> progress(sources_.size());
    for (std::size_t i = 0; i < sources_.size() && session_.signal() == 0; ++i) {
      progress[i].ready = Usable(i) && Prepare(i, shape, &progress[i].batch);
    }
    for (int round = 0; round < request_.rounds; ++round) {
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        if (session_.signal() != 0) return;
        if (progress[i].ready && Usable(i)) MeasureOnce(i, progress[i]);
      }
    }
    AddCells(shape, progress);
  }

  void MeasureOnce(std::size_t column, Progress& progress) {
    const auto samples = Time(column, request_.warmup, progress.batch);
    if (!samples) return;
    progress.samples.insert(progress.samples.end(), samples->begin(), samples->end());
    // On a busy machine a call can take a hundred times longer than the previous one.
    const double mean =
        std::accumulate(samples->begin(), samples->end(), 0.0) / static_cast<double>(samples->size());
    progress.batch = BatchFor(Slot(), mean);
  }

  void AddCells(const Shape& shape, const std::vector<Progress>& progress) {
    double copy = 0;
    for (std::size_t i = 0; i < progress.size(); ++i) {
      if (progress[i].samples.empty()) continue;
      Cell cell;
      cell.column = i;
      cell.shape = shape;
      cell.time = Summarise(progress[i].samples);
      cell.algbw = Bandwidth(shape.bytes, cell.time.median);
      cell.busbw = cell.algbw * BusFactor(sources_[i].operation, static_cast<std::uint64_t>(request_.ranks));
      if (sources_[i].operation == Operation::kCopy) copy = cell.algbw;
      if (copy > 0) cell.efficiency = cell.algbw / copy;
      WriteOutput(TableRow(report_, cell));
      report_.cells.push_back(cell);
    }
    (void)FlushOutput();  // main reports a failure at its end
  }

  int WriteFiles() {
    bool written = Write(request_.json, ToJson(report_));
    const std::string plot = request_.plot.ends_with(".svg") ? ToSvg(report_) : ToHtml(report_);
    written = Write(request_.plot, plot) && written;
    if (!written) return kUserError;
    bool any = false;
    for (const Cell& cell : report_.cells) any = any || sources_[cell.column].operation != Operation::kCopy;
    if (!any) Complain("nothing was measured; the lines above say why");
    return any && !failed_ && report_.wrong.empty() ? 0 : kFailed;
  }

  bool Write(const std::string& file, const std::string& text) {
    if (file.empty()) return true;
    std::ofstream out(file, std::ios::trunc);
    out << text;
    out.close();
    if (out) {
      PrintMessage("dtrun: bench: wrote {}\n", file);
      return true;
    }
    Complain(Error::System(fmt::format("write '{}'", file), errno).text);
    return false;
  }

  const Request& request_;
  Report report_;
  std::vector<Layer> layers_;
  std::vector<Source> sources_;
  bool failed_ = false;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  Session session_;
};

}  // namespace

int Sweep(const Request& request, process::Lifeline& lifeline) { return Run(request, lifeline).Do(); }

}  // namespace dtrun::bench

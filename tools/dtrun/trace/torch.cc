#include "tools/dtrun/trace/torch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/read_file.h"

namespace dtrun::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfATorchTrace = std::size_t{4} << 30;
constexpr int kFirstTorchRow = 100'000;
constexpr double kSince2001 = 1e15;  // microseconds since 1970; a smaller time counts from a base
constexpr double kMostMicroseconds = 4e15;

Error Lacks(const fs::path& file, const std::string& what) {
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("--torch: '{}' {}", file.string(), what)};
}

std::optional<double> TimeIn(const Json& event, const char* name) {
  if (!event.contains(name) || !event[name].is_number()) return std::nullopt;
  const auto time = event[name].get<double>();
  return std::isfinite(time) && time >= 0 && time < kMostMicroseconds ? std::optional(time) : std::nullopt;
}

// torch's processes and threads as rows of the rank. Both are numbers or texts there.
class Rows {
 public:
  Rows(int rank, Timeline* to) : rank_(rank), to_(*to) {}

  Row Of(const Json& event) {
    const std::string process = KeyOf(event, "pid"), thread = KeyOf(event, "tid");
    const auto [number, fresh] = processes_.try_emplace(process, static_cast<int>(processes_.size()) + 1);
    const int id = ProcessOf(rank_) + std::min(number->second, kProcessesOfARank - 1);
    if (fresh && !named_.contains(process))
      to_.document.NameProcess(id, fmt::format("{}, torch: {}", to_.NameOf(rank_), process), id);
    const auto [row, added] =
        rows_.try_emplace({process, thread}, kFirstTorchRow + static_cast<int>(rows_.size()));
    const Row at{id, row->second};
    if (added && !named_.contains(process + "\n" + thread)) to_.document.NameRow(at, thread, at.thread);
    return at;
  }

  // A name that torch gives.
  void Name(const Json& event, const std::string& kind) {
    if (!event.contains("args") || !event["args"].is_object()) return;
    const Json& arguments = event["args"];
    if (!arguments.contains("name") || !arguments["name"].is_string()) return;
    const std::string name = TextIn(arguments, "name");
    const std::string process = KeyOf(event, "pid");
    if (kind == "process_name") {
      named_.insert(process);
      const Row row = Of(event);
      to_.document.NameProcess(row.process, fmt::format("{}, torch: {} {}", to_.NameOf(rank_), name, process),
                               row.process);
    } else {
      named_.insert(process + "\n" + KeyOf(event, "tid"));
      const Row row = Of(event);
      to_.document.NameRow(row, name, row.thread);
    }
  }

 private:
  static std::string KeyOf(const Json& event, const char* name) {
    if (!event.contains(name)) return "";
    return event[name].is_string() ? event[name].get<std::string>() : JsonLine(event[name]);
  }

  const int rank_;
  Timeline& to_;
  std::map<std::string, int> processes_;
  std::map<std::pair<std::string, std::string>, int> rows_;
  std::set<std::string> named_;
};

}  // namespace

Result<std::vector<fs::path>> TorchFiles(const std::vector<std::string>& given) {
  std::vector<fs::path> files;
  for (const std::string& one : given) {
    std::error_code none;
    if (!fs::is_directory(one, none)) {
      if (one.ends_with(".gz")) return Lacks(one, "is compressed; unpack it first: gunzip -k FILE");
      files.emplace_back(one);
      continue;
    }
    const std::size_t before = files.size();
    bool packed = false;
    std::error_code failure;
    for (fs::recursive_directory_iterator entry(one, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      constexpr int kDeepest = 3;
      if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
      std::error_code gone;
      packed = packed || entry->path().string().ends_with(".json.gz");
      if (entry->path().extension() == ".json" && entry->is_regular_file(gone))
        files.push_back(entry->path());
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
    if (files.size() == before)
      return Lacks(one, packed ? "has only compressed traces; unpack them first: gunzip -k *.json.gz"
                               : "has no file that ends in .json; name the folder that torch.profiler wrote");
  }
  return files;
}

Status AddTorch(const fs::path& file, Timeline* to) {
  const Result<std::string> text = ReadWholeForeignFile(file, kMostOfATorchTrace);
  if (!text) return Lacks(file, "cannot be read: " + text.error().text);
  const Json trace = ParseJson(*text);
  if (trace.is_array())
    return Lacks(file,
                 "has times since an unknown moment and no rank, as torch without Kineto writes them; "
                 "profile with torch 2");
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return Lacks(file, "is no trace of torch.profiler, or is cut off; export it with export_chrome_trace()");
  const std::int64_t number =
      trace.contains("distributedInfo") ? NumberIn(trace["distributedInfo"], "rank", -1) : -1;
  if (number < 0 || number >= (1 << 20))
    return Lacks(file,
                 "does not say which rank it is of (distributedInfo.rank); start the profiler after "
                 "init_process_group");
  const int rank = static_cast<int>(number);
  const auto base = static_cast<double>(NumberIn(trace, "baseTimeNanoseconds", 0));
  const auto base_ns = static_cast<std::int64_t>(std::clamp(base, 0.0, kMostMicroseconds * 1000));
  const std::string host = to->HostOf(rank);
  Rows rows(rank, to);
  for (const Json& event : trace["traceEvents"]) {
    if (!event.is_object() || !event.contains("ph") || event["ph"] != "M" || !event.contains("name"))
      continue;
    if (event["name"] == "process_name" || event["name"] == "thread_name")
      rows.Name(event, event["name"].get<std::string>());
  }
  std::size_t unread = 0;
  std::int64_t latest = 0;
  for (const Json& event : trace["traceEvents"]) {
    const bool has_phase = event.is_object() && event.contains("ph") && event["ph"].is_string();
    const std::string phase = has_phase ? event["ph"].get<std::string>() : "";
    if (phase == "M") continue;
    const std::optional<double> at = has_phase ? TimeIn(event, "ts") : std::nullopt;
    const std::optional<double> duration = has_phase ? TimeIn(event, "dur") : std::nullopt;
    if (phase.size() != 1 || !at || (phase == "X" && !duration) || (*at < kSince2001 && base_ns == 0)) {
      ++unread;
      continue;
    }
    const std::int64_t start =
        to->clocks.AtRoot(host, static_cast<std::int64_t>(*at * 1000) + (*at < kSince2001 ? base_ns : 0));
    latest = std::max(latest, start);
    Json members = event;
    for (const char* name : {"ph", "pid", "tid", "ts", "dur"}) members.erase(name);
    for (const char* name : {"id", "id2"})  // links events; others use the same numbers
      if (members.contains(name)) members[name] = fmt::format("{}.{}", rank, JsonLine(members[name]));
    to->document.Foreign(rows.Of(event), phase[0], start,
                         phase == "X" ? static_cast<std::int64_t>(std::llround(*duration * 1000)) : -1,
                         members);
  }
  if (unread > 0)
    to->missing.push_back(fmt::format("{}: {} events have no usable time", file.string(), unread));
  if (latest > 0 && latest < to->began)
    to->missing.push_back(
        fmt::format("{}: it was recorded before this job began, so it is of another run", file.string()));
  return {};
}

}  // namespace dtrun::trace

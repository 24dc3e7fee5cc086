// The launcher's part of a timeline: what events.log says.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/verdict/event_log.h"
#include "tools/dtrun/trace/run.h"

namespace dtrun::trace {
namespace {

namespace fs = std::filesystem;

constexpr Row kJobRow{kLauncher, 1};
constexpr Row kGenerationRow{kLauncher, 2};
constexpr char kCategory[] = "launcher";
constexpr std::size_t kMostAgents = kFirstRank - kFirstAgent;

Row ProcessRow(int rank) { return {ProcessOf(rank), 1}; }

// What a record says beside its time; without lines that ranks have printed.
Json ArgumentsOf(const Json& record) {
  Json arguments = Json::object();
  for (const auto& [name, value] : record.items()) {
    if (name != "at" && name != "kind" && name != "lines" && name != "processes" && name != "ranks")
      arguments[name] = value;
  }
  return arguments;
}

class Reader {
 public:
  Reader(fs::path run, Timeline* to) : run_(std::move(run)), to_(*to) {}

  void Read(const std::string& text) {
    for (const std::string_view line : LinesOf(text)) {
      const Json record = ParseJson(line);
      const std::string kind = record.is_object() ? TextIn(record, "kind") : "";
      const std::int64_t at = kind.empty() ? -1 : NumberIn(record, "at", -1);
      constexpr std::int64_t kACentury = std::int64_t{100} * 366 * 24 * 3600 * 1'000'000'000;
      if (at < 0 || at > kACentury) {
        ++unread_;
        continue;
      }
      if (kind == "opened") Open(record);
      if (!opened_) continue;
      last_ = std::max(last_, to_.began + at);
      On(kind, record, to_.began + at);
    }
  }

  Status Finish() {
    if (!opened_) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("'{}' holds no events of a job; name the folder of a run",
                               (run_ / verdict::kEventsFile).string())};
    }
    if (unread_ > 0)
      to_.missing.push_back(
          fmt::format("{}: {} lines are damaged", (run_ / verdict::kEventsFile).string(), unread_));
    for (const auto& [rank, process] : std::exchange(living_, {}))
      EndRank(rank, last_, {{"ended", "not known"}});
    EndGeneration(last_);
    Document& document = to_.document;
    document.NameProcess(kLauncher, "dtrun" + (host_.empty() ? "" : " on " + host_), kLauncher);
    document.NameRow(kJobRow, "job", 1);
    document.NameRow(kGenerationRow, "generations", 2);
    constexpr std::size_t kMostOfAVerdict = std::size_t{64} << 20;
    Json verdict = ParseJson(ReadForeignFile(run_ / "verdict.json", kMostOfAVerdict));
    if (verdict.is_object()) {
      Json told = Json::object();
      for (const auto& [name, value] : verdict.items())
        if (value.is_primitive() && name != "schema") told[name] = value;
      document.Instant(kJobRow, "verdict", kCategory, last_, told);
    }
    return {};
  }

 private:
  struct Living {
    std::int64_t since = 0;
    std::int64_t pid = 0;
  };

  void Open(const Json& record) {
    if (std::exchange(opened_, true)) return;  // a later file repeats it
    to_.began = NumberIn(record, "began_ns", 0);
    if (to_.began <= 0) {
      to_.began = 0;
      to_.missing.push_back(
          "the run was made by an older dtrun, which did not note when it began: times count from 1970");
    }
    to_.document.about["job"] = TextIn(record, "job");
    to_.document.about["began"] = TextIn(record, "began");
    last_ = to_.began;
  }

  void On(const std::string& kind, const Json& record, std::int64_t at) {
    const std::int64_t rank = NumberIn(record, "rank", -1);
    if (kind == "host-clock") {
      to_.clocks.Add(TextIn(record, "host"), at, NumberIn(record, "ahead_ns", 0),
                     NumberIn(record, "uncertainty_ns", 0));
    }
    if (kind == "host-clock" || kind == "host-lost") {
      to_.document.Instant(AgentRow(TextIn(record, "host")), kind, kCategory, at, ArgumentsOf(record));
    } else if (kind == "began") {
      Begin(record, at);
    } else if (kind == "over" || kind == "withdrawn") {
      EndGeneration(at);
    } else if (rank >= 0 && rank < (1 << 20)) {
      OnRank(kind, static_cast<int>(rank), record, at);
    } else if (kind == "noted") {
      to_.document.Instant(kJobRow, TextIn(record, "what"), kCategory, at, ArgumentsOf(record));
    } else if (kind != "opened" && kind != "earlier") {
      to_.document.Instant(kJobRow, kind, kCategory, at, ArgumentsOf(record));
    }
  }

  // The time before is that in which hosts join, are checked and prepared.
  void Begin(const Json& record, std::int64_t at) {
    EndGeneration(at);
    Json arguments = Json::object();
    if (!generation_) {
      constexpr std::size_t kMostOfATable = 4096;
      if (const std::string network = ReadForeignFile(run_ / "network.txt", kMostOfATable); !network.empty())
        arguments["network"] = network;
    }
    to_.document.Span(
        kGenerationRow,
        generation_ ? "restart: hosts, network, preparation" : "start: hosts, network, preparation",
        kCategory, generation_ ? over_ : to_.began, at, arguments);
    generation_ = NumberIn(record, "generation", 0);
    since_ = at;
    running_ = true;
    if (record.contains("processes") && record["processes"].is_array()) {
      for (const Json& process : record["processes"]) {
        if (!process.is_object()) continue;
        const std::string host = TextIn(process, "host");
        if (host_.empty()) host_ = host;
        agents_.insert(host);
        const std::int64_t first = NumberIn(process, "rank", -1), count = NumberIn(process, "count", 1);
        for (std::int64_t rank = first; rank >= 0 && rank < first + count && rank < (1 << 20); ++rank)
          to_.hosts.emplace(static_cast<int>(rank), host);
      }
    }
  }

  void EndGeneration(std::int64_t at) {
    if (!std::exchange(running_, false)) return;
    for (const auto& [rank, process] : std::exchange(living_, {}))
      End(rank, process, at, {{"ended", "not known"}});
    const std::string name = fmt::format("generation {}", *generation_);
    to_.document.Span(kGenerationRow, name, kCategory, since_, at);
    for (const std::string& host : std::exchange(agents_, {}))
      if (host != host_) to_.document.Span(AgentRow(host), "ranks of " + name, kCategory, since_, at);
    over_ = at;
  }

  // Of the first host it is the job's.
  Row AgentRow(const std::string& host) {
    if (host == host_ || numbers_.size() >= kMostAgents) return kJobRow;
    const auto [number, fresh] = numbers_.try_emplace(host, kFirstAgent + static_cast<int>(numbers_.size()));
    const Row row{number->second, 1};
    if (fresh) {
      to_.document.NameProcess(row.process, "agent on " + host, row.process);
      to_.document.NameRow(row, "host", 1);
    }
    return row;
  }

  void OnRank(const std::string& kind, int rank, const Json& record, std::int64_t at) {
    if (kind == "started") {
      living_[rank] = {at, NumberIn(record, "pid", 0)};
      to_.document.NameRow(ProcessRow(rank), "process", 1);
    } else if (kind == "ended") {
      EndRank(rank, at, ArgumentsOf(record));
    } else if (kind != "said-before" && kind != "said-last") {
      to_.document.NameRow(ProcessRow(rank), "process", 1);
      to_.document.Instant(ProcessRow(rank), kind, kCategory, at, ArgumentsOf(record));
    }
  }

  void EndRank(int rank, std::int64_t at, const Json& how) {
    const auto process = living_.find(rank);
    if (process == living_.end()) return;
    End(rank, process->second, at, how);
    living_.erase(process);
  }

  void End(int rank, const Living& process, std::int64_t at, const Json& how) {
    to_.document.Span(ProcessRow(rank), fmt::format("process {}", process.pid), kCategory, process.since, at,
                      how);
  }

  const fs::path run_;
  Timeline& to_;
  bool opened_ = false, running_ = false;
  std::int64_t last_ = 0, since_ = 0, over_ = 0;
  std::optional<std::int64_t> generation_;
  std::map<int, Living> living_;
  std::string host_;              // the first
  std::set<std::string> agents_;  // hosts of this generation
  std::map<std::string, int> numbers_;
  std::size_t unread_ = 0;
};

}  // namespace

Status AddLauncher(const fs::path& run, Timeline* to) {
  Reader reader(run, to);
  constexpr std::size_t kMost = 2 * verdict::EventLog::kMostOfAFile;
  reader.Read(ReadForeignFile(run / verdict::kEventsBefore, kMost));
  const Result<std::string> text = ReadWholeForeignFile(run / verdict::kEventsFile, kMost);
  if (!text) return text.error();
  reader.Read(*text);
  return reader.Finish();
}

}  // namespace dtrun::trace

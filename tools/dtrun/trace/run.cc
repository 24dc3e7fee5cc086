#include "tools/dtrun/trace/run.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/number.h"
#include "core/base/read_file.h"

namespace dtrun::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfATrace = std::size_t{4} << 30;

// The number in "rank-17.trace"; -1: another name.
int RankOf(const fs::path& file) {
  const std::string name = file.filename().string();
  constexpr std::string_view kBefore = "rank-", kAfter = ".trace";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter) || name.size() <= kBefore.size() + kAfter.size())
    return -1;
  const auto rank = NumberOf<int>(
      std::string_view(name).substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()));
  return rank && *rank >= 0 && *rank < (1 << 20) ? *rank : -1;
}

// The hosts of a generation's ranks; unchanged without a plan.
void ReadHosts(const fs::path& folder, std::map<int, std::string>* hosts) {
  constexpr std::size_t kMostOfAPlan = std::size_t{1} << 30;
  const Json plan = ParseJson(ReadForeignFile(folder / "plan.json", kMostOfAPlan));
  if (!plan.is_object() || !plan.contains("hosts") || !plan["hosts"].is_array()) return;
  hosts->clear();
  for (const Json& host : plan["hosts"]) {
    if (!host.is_object() || !host.contains("name") || !host["name"].is_string()) continue;
    const std::int64_t first = NumberIn(host, "first_rank", 0), count = NumberIn(host, "local_size", 0);
    for (std::int64_t rank = first; rank < first + count && rank < (1 << 20) && rank >= 0; ++rank)
      (*hosts)[static_cast<int>(rank)] = TextIn(host, "name");
  }
}

void AddTrace(const fs::path& file, int rank, int generation, Timeline* to, std::vector<RankProcess>* ranks) {
  const auto tell = [&](const std::string& what) {
    to->missing.push_back(fmt::format("{}: {}", file.string(), what));
  };
  const Result<std::string> bytes = ReadWholeForeignFile(file, kMostOfATrace);
  if (!bytes) return tell(bytes.error().text);
  contract::Trace trace = contract::ReadTrace(*bytes);
  if (trace.damaged > 0) tell(fmt::format("{} records are damaged", trace.damaged));
  if (trace.partial > 0) tell("the last record is cut off");
  if (trace.sessions.empty()) return tell("it holds no calls");
  ++to->ranks_traced;
  for (contract::TraceSession& session : trace.sessions) {
    for (const std::string& what : contract::Missing(session)) tell(what);
    ranks->push_back({generation, rank, to->HostOf(rank), std::move(session)});
  }
}

}  // namespace

std::string TextIn(const Json& record, const char* name) {
  return record.contains(name) && record[name].is_string() ? record[name].get<std::string>() : "";
}

std::int64_t NumberIn(const Json& record, const char* name, std::int64_t otherwise) {
  return record.contains(name) && record[name].is_number_integer() ? record[name].get<std::int64_t>()
                                                                   : otherwise;
}

std::string Timeline::HostOf(int rank) const {
  const auto host = hosts.find(rank);
  return host == hosts.end() ? "" : host->second;
}

std::string Timeline::NameOf(int rank) const {
  const std::string host = HostOf(rank);
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
}

Result<Timeline> ReadRunFolder(const fs::path& run) {
  Timeline timeline;
  ReadHosts(run, &timeline.hosts);
  if (Status launched = AddLauncher(run, &timeline); !launched) return launched.error();
  std::vector<RankProcess> ranks;
  for (int generation = 0;; ++generation) {
    const fs::path folder = generation == 0 ? run : run / fmt::format("generation-{}", generation);
    std::error_code none;
    if (!fs::is_directory(folder, none)) break;
    if (generation > 0) ReadHosts(folder, &timeline.hosts);
    for (const fs::path& file : EntriesOf(folder)) {
      if (const int rank = RankOf(file); rank >= 0) AddTrace(file, rank, generation, &timeline, &ranks);
    }
    constexpr std::size_t kMostOfCalls = std::size_t{1} << 20;
    if (const std::string calls = ReadForeignFile(folder / "calls.txt", kMostOfCalls); !calls.empty())
      timeline.document.about[fmt::format("last_calls_of_generation_{}", generation)] = calls;
  }
  AddCalls(ranks, &timeline);
  for (const auto& [rank, host] : timeline.hosts)
    timeline.document.NameProcess(ProcessOf(rank), timeline.NameOf(rank), ProcessOf(rank));
  timeline.document.about["clocks"] = timeline.clocks.About();
  timeline.document.about["missing"] = timeline.missing;
  return timeline;
}

}  // namespace dtrun::trace

// Makes one timeline of a run from its folder: events.log, the ranks' traces, what the flight recorder held.
//
// Reads files that may be damaged, cut or of another run; of each it takes what is intact and says what is
// missing. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/contract/trace.h"
#include "tools/dtrun/trace/clocks.h"
#include "tools/dtrun/trace/document.h"

namespace dtrun::trace {

// Processes of the timeline: the launcher, an agent for each further host, and several for each rank.
inline constexpr int kLauncher = 1;
inline constexpr int kFirstAgent = 2;
inline constexpr int kFirstRank = 100'000;
inline constexpr int kProcessesOfARank = 64;
constexpr int ProcessOf(int rank) { return kFirstRank + rank * kProcessesOfARank; }

// A process of a rank that lived in one generation.
struct RankProcess {
  int generation = 0;
  int rank = 0;
  std::string host;
  contract::TraceSession session;
};

// What one file will show.
struct Timeline {
  Document document;
  Clocks clocks;
  std::int64_t began = 0;            // the job
  std::map<int, std::string> hosts;  // of each rank, in the last generation
  std::vector<std::string> missing;  // for people: what is not in it, and why
  std::size_t ranks_traced = 0;

  // The row's name for people: "rank 3 on node1".
  std::string NameOf(int rank) const;
  std::string HostOf(int rank) const;
};

// An error: the folder has no events.log that can be read.
Result<Timeline> ReadRunFolder(const std::filesystem::path& run);

// ---- its parts ----

// A member of a record; empty, or `otherwise`: it has none of that type.
std::string TextIn(const Json& record, const char* name);
std::int64_t NumberIn(const Json& record, const char* name, std::int64_t otherwise);

// Adds what events.log says. An error: it cannot be read, or is of no job.
Status AddLauncher(const std::filesystem::path& run, Timeline* to);
// Adds the calls of all ranks. Collectives are matched by communicator and number, so each knows the last
// rank.
void AddCalls(const std::vector<RankProcess>& ranks, Timeline* to);

// Bytes and bus bandwidth as nccl-tests' PERFORMANCE.md defines them; `bytes` as in TraceRecord. 0: it has
// none.
double MessageBytes(int operation, std::uint64_t bytes, int ranks);
double BusFactorOf(int operation, int ranks);

}  // namespace dtrun::trace

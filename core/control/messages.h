// What a user asks a running job, and its answer: one line of JSON each over the socket `control` in the
// job's run folder.
//
// Values; any thread. Members may be added; a change of their meaning needs another kVersion, and both sides
// refuse other versions.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/facts.h"
#include "core/wire/limits.h"

namespace dtrun::control {

inline constexpr int kVersion = 1;
inline constexpr char kSocket[] = "control";

enum class What : std::uint8_t {
  kState,   // the job, its ranks and hosts
  kPlaces,  // the same, and where each rank is
  kStop,    // ends the job; the connection closes once it has ended
};
constexpr std::array<const char*, 3> EnumNames(What) { return {"state", "places", "stop"}; }

struct Question {
  int version = kVersion;
  What what = What::kState;
  std::vector<int> native = {};                        // kPlaces: ranks to take native stacks of
  std::optional<std::chrono::nanoseconds> grace = {};  // kStop: instead of job.grace
  // kPlaces: with the call that torch's own recorder has, for which each rank works up to 30 ms.
  bool recorders = false;
  bool straggler = false;  // kPlaces: judge by all looks so far

  void Fields(auto& io) {
    io("version", version);
    io("what", what);
    io("native", native, wire::kMostEntries, wire::kAnyRank);
    io("grace", grace, wire::kUpToADay);
    io("recorders", recorders, wire::kMayMiss);
    io("straggler", straggler, wire::kMayMiss);
  }
};

// A process of the job, with one rank or more.
struct RankNow {
  int rank = 0;
  int count = 1;
  std::string host;
  pid_t pid = 0;        // 0: not started
  bool joined = false;  // reached dtrun_init
  bool ended = false;

  bool Holds(int one) const { return one >= rank && one < rank + count; }

  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank);
    io("count", count, wire::kAnyRank);
    io("host", host, wire::kMostName, wire::kPrintable);
    io("pid", pid, wire::Between{0, wire::kAnyPid.most});
    io("joined", joined);
    io("ended", ended);
  }
};

struct Answer {
  int version = kVersion;
  std::string error = {};  // why there is no answer; empty: there is one
  std::string dtrun = {};  // version of the job's dtrun
  std::string job = {};
  std::string state = {};    // "starting", "running", "ending", "restarting"
  std::string joining = {};  // while hosts join: how many have, which are missing and why
  std::uint64_t generation = 0;
  std::chrono::nanoseconds age = {};    // since the job began
  std::chrono::nanoseconds quiet = {};  // since the last output; 0: no rank runs
  std::vector<RankNow> ranks = {};
  std::vector<verdict::RankDoing> places = {};  // of the ranks that could be read
  std::optional<verdict::Straggler> straggler = {};

  // The process of `rank`; null: the job has no such rank.
  const RankNow* Find(int rank) const {
    const auto found = std::ranges::find_if(ranks, [rank](const RankNow& one) { return one.Holds(rank); });
    return found == ranks.end() ? nullptr : &*found;
  }

  // The state, and what the job waits for in it.
  std::string StateText() const { return joining.empty() ? state : state + ": " + joining; }

  void Fields(auto& io) {
    io("version", version);
    io("error", error);
    io("dtrun", dtrun, wire::kMostName, wire::kPrintable);
    io("job", job, wire::kMostName, wire::kPrintable);
    io("state", state, wire::kMostName, wire::kPrintable);
    io("joining", joining, wire::kMayMiss);
    io("generation", generation);
    io("age", age, wire::kNotNegative);
    io("quiet", quiet, wire::kNotNegative);
    io("ranks", ranks, wire::kMostEntries);
    io("places", places, wire::kMostEntries);
    io("straggler", straggler);
  }
};

}  // namespace dtrun::control

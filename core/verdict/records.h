// What happened in a job: one record per fact, in the order in which the root learned of it.
//
// Plain structs with one field list each, from which events.log is written and read (event_log.h). story.h
// folds them into the facts of each generation. Values; any thread.
#pragma once

#include <array>
#include <chrono>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "core/verdict/facts.h"
#include "core/wire/limits.h"

namespace dtrun::verdict::fact {

inline constexpr wire::Between<std::int64_t> kAnyClock{-(std::int64_t{1} << 62), std::int64_t{1} << 62};

using wire::kAny, wire::kAnyRank, wire::kMayMiss, wire::kMostEntries;

// The first record of each file.
struct Opened {
  static constexpr char kName[] = "opened";
  static constexpr int kVersion = 1;
  int version = kVersion;
  std::string job, folder;     // `folder`: of the run
  std::string began;           // wall clock at the job's start, to which all times are relative
  std::uint64_t began_ns = 0;  // the same, since 1970; 0: not known
  void Fields(auto& io) {
    io("version", version, wire::Between{0, 1 << 20}), io("job", job), io("folder", folder),
        io("began", began);
    io("began_ns", began_ns, kMayMiss, wire::Between<std::uint64_t>{0, std::uint64_t{1} << 62});
  }
};

// The generations before, in a file that follows a full one.
struct Earlier {
  static constexpr char kName[] = "earlier";
  std::vector<GenerationSummary> first, latest;
  std::uint64_t omitted = 0;
  void Fields(auto& io) {
    io("first", first, wire::Most{GenerationSummary::kFirst});
    io("latest", latest, wire::Most{GenerationSummary::kLatest});
    io("omitted", omitted, kAnyCount);
  }
};

struct Began {
  struct Process {
    int rank = 0, count = 1;
    std::string host, program;
    void Fields(auto& io) {
      io("rank", rank, kAnyRank), io("count", count, wire::Between{1, kAnyRank.most + 1});
      io("host", host), io("program", program);
    }
  };
  static constexpr char kName[] = "began";
  std::uint64_t generation = 0;
  std::string logs;
  std::vector<Process> processes;
  int regroups = 0;
  bool names_class = true;
  void Fields(auto& io) {
    io("generation", generation, kAnyCount), io("logs", logs), io("processes", processes, kMostEntries);
    io("regroups", regroups, wire::Between{0, std::numeric_limits<int>::max()});
    io("names_class", names_class);
  }
};

// Facts about one rank.
struct OfRank {
  int rank = 0;
  void Fields(auto& io) { io("rank", rank, kAnyRank); }
};
struct Started : OfRank {
  static constexpr char kName[] = "started";
  pid_t pid = 0;
  void Fields(auto& io) { OfRank::Fields(io), io("pid", pid, wire::kNotNegative); }
};
struct Joined : OfRank {
  static constexpr char kName[] = "joined";
};
struct Left : OfRank {
  static constexpr char kName[] = "left";
};
// It blames another one.
struct Reported : OfRank {
  static constexpr char kName[] = "reported";
  PeerReport report;
  template <class Io>
  void Fields(Io& io) {
    std::string id(report.id == ErrorId{} ? "" : Error{DTRUN_INTERNAL, "", -1, report.id}.Id());
    OfRank::Fields(io), io("peer", report.peer, wire::kAnyRankOrNone), io("what", report.what);
    io("members", report.members, kMostEntries, kAnyRank, kMayMiss);
    io("id", id, kMayMiss), io("args", report.args, kMostEntries, kMayMiss);
    if constexpr (!Io::kWrites) report.id = ErrorIdOf(id);
  }
};
struct MpiStarted : OfRank {
  static constexpr char kName[] = "mpi-started";
};
struct MpiFinished : OfRank {
  static constexpr char kName[] = "mpi-finished";
};
struct MpiAborted : OfRank {
  static constexpr char kName[] = "mpi-aborted";
  MpiAbort abort;
  void Fields(auto& io) {
    OfRank::Fields(io), io("code", abort.code, kAnyInt), io("message", abort.message);
    io("broke", abort.broke, kMayMiss);
  }
};
struct Ended : OfRank {
  static constexpr char kName[] = "ended";
  process::Ending ending;
  int signal_sent = 0;
  void Fields(auto& io) {
    OfRank::Fields(io), io("code", ending.code, wire::kAnyExitCode),
        io("signal", ending.signal, wire::kAnySignal, kMayMiss);
    io("core_dumped", ending.core_dumped, kMayMiss), io("out_of_memory", ending.out_of_memory, kMayMiss);
    io("stopped_by", ending.stopped_by, wire::kAnySignal, kMayMiss);
    io("forwarded", ending.forwarded, kMayMiss);
    io("early", ending.early_exit, wire::Between{process::EarlyExit::kNone, process::EarlyExit::kInMember},
       kMayMiss);
    io("signal_sent", signal_sent, wire::kAnySignal, kMayMiss);
  }
};
// The place in the program's own code, as its host read it from the stack or the core file.
struct CrashedAt : OfRank {
  static constexpr char kName[] = "crashed-at";
  std::string place;
  void Fields(auto& io) { OfRank::Fields(io), io("place", place); }
};
// It had ended before it turned out to be needed.
struct EndedEarly : OfRank {
  static constexpr char kName[] = "ended-early";
  process::EarlyExit how = process::EarlyExit::kNone;
  void Fields(auto& io) {
    OfRank::Fields(io),
        io("how", how, wire::Between{process::EarlyExit::kNone, process::EarlyExit::kInMember});
  }
};
// A rank below an mpirun, which is the process of the plan.
struct InnerFailed : Ended {
  static constexpr char kName[] = "inner-failed";
  pid_t pid = 0;
  void Fields(auto& io) { Ended::Fields(io), io("pid", pid, wire::kNotNegative); }
};
struct FailedFirst : OfRank {
  static constexpr char kName[] = "failed-first";
};
struct Overrode : OfRank {
  static constexpr char kName[] = "overrode";
  std::string name, given, now;
  void Fields(auto& io) { OfRank::Fields(io), io("name", name), io("given", given), io("now", now); }
};
// It waited for a file lock and has printed something, so it no longer waits.
struct MovedOn : OfRank {
  static constexpr char kName[] = "moved-on";
};
// The beginning of a traceback.
struct PrintedError : OfRank {
  static constexpr char kName[] = "printed-error";
};
// Its last lines when another rank had failed and it lived.
struct SaidBefore : OfRank {
  static constexpr char kName[] = "said-before";
  std::vector<std::string> lines;
  void Fields(auto& io) { OfRank::Fields(io), io("lines", lines, kMostEntries); }
};
// Its last lines.
struct SaidLast : SaidBefore {
  static constexpr char kName[] = "said-last";
  std::vector<std::string> files;
  bool cut = false;
  void Fields(auto& io) {
    SaidBefore::Fields(io), io("files", files, kMostEntries, kMayMiss), io("cut", cut, kMayMiss);
  }
};
// A known failure in its output.
struct Recognised : OfRank {
  static constexpr char kName[] = "recognised";
  failures::LogFinding found;
  template <class Io>
  void Fields(Io& io) {
    failures::KnownFailure failure =
        found.finding.failure ? *found.finding.failure : failures::KnownFailure();
    std::string file = found.file.string();
    OfRank::Fields(io), io("id", failure.id), io("source", failure.source);
    io("depth", failure.depth, wire::Between{failures::Depth::kCause, failures::Depth::kReport}, kMayMiss);
    io("class", failure.kind, wire::Between{failures::Kind::kUnsaid, failures::Kind::kCalls}, kMayMiss);
    io("against", failure.against, kMostEntries, kMayMiss);
    io("what", found.finding.what), io("fix", found.finding.fix), io("line", found.finding.line);
    io("line_number", found.finding.line_number, kAnyCount, kMayMiss);
    io("count", found.finding.count, kAnyCount);
    io("file", file, kMayMiss), io("recent", found.recent);
    if constexpr (!Io::kWrites) {
      found.finding.failure = std::make_shared<const failures::KnownFailure>(std::move(failure));
      found.file = std::move(file);
    }
  }
};

// Where ranks were. `last`: before they were ended; replaces what earlier looks found.
struct Places {
  static constexpr char kName[] = "looked";
  // Without the stacks, which are in kStacksFile, and what only a watch for stalls needs.
  struct Rank : OfRank {
    RankDoing doing;
    void Fields(auto& io) {
      OfRank::Fields(io),
          io("stand", doing.stand, wire::Between{stacks::Stand::kUnknown, stacks::Stand::kElsewhere});
      io("joins", doing.joins, kMayMiss), io("may_handle", doing.may_handle, kMayMiss);
      io("phrase", doing.phrase), io("beside", doing.beside, kMayMiss),
          io("waits_for", doing.waits_for, wire::kAnyRankOrNone);
      io("plugin", doing.plugin, wire::kMostName, kMayMiss);
      io("awaited", doing.awaited, kMayMiss);
      doing.rank = rank;
    }
  };
  bool last = false;
  std::vector<Rank> ranks;
  void Fields(auto& io) { io("last", last, kMayMiss), io("ranks", ranks, kMostEntries); }
};
struct Straggled {
  static constexpr char kName[] = "straggled";
  Straggler straggler;
  void Fields(auto& io) { straggler.Fields(io); }
};
struct MpiServerLost {
  static constexpr char kName[] = "mpi-server-lost";
  MpiServerLoss loss;
  void Fields(auto& io) {
    io("host", loss.host), io("how", loss.how), io("needed", loss.needed, kMostEntries, kAnyRank);
  }
};
struct HostLost {
  static constexpr char kName[] = "host-lost";
  HostLoss loss;
  void Fields(auto& io) {
    io("host", loss.host), io("why", loss.why), io("agent_died", loss.agent_died),
        io("next", loss.next, kMayMiss);
  }
};
// After a failure of the network: hosts that cannot reach each other.
struct HostsApart {
  static constexpr char kName[] = "hosts-apart";
  std::string what;  // "hosts hh1 and hh2 cannot reach each other: ..."
  void Fields(auto& io) { io("what", what); }
};
struct Isolated {
  static constexpr char kName[] = "isolated";
  IsolatedRanks found;
  void Fields(auto& io) { io("what", found.what), io("next", found.next); }
};
// By a signal, before any rank failed.
struct Interrupted {
  static constexpr char kName[] = "interrupted";
  int signal = 0;
  std::string host = {};  // where dtrun got the signal; empty: on the root's host
  void Fields(auto& io) {
    io("signal", signal, wire::kAnySignal);
    io("host", host, kMayMiss);
  }
};
// A fact about the generation; `text` as Facts explains it.
struct Noted {
  static constexpr char kName[] = "noted";
  enum class What : std::uint8_t {
    kCallsDiffer,
    kStalled,
    kTimeLimit,
    kRegroup,
    kNotRestarted,
    kMet,  // from here on without a text
    kGuardDied,
    kAccomplished,
    kStacks,
    kRestarts,
    kGap,          // records before this one are missing: the file was too large, or a write failed
    kWorkedAlone,  // the ranks, each in a world of its own, which does not fail the job; with what to do
  };
  What what = What::kMet;
  std::string text = {};
  void Fields(auto& io) { io("what", what), io("text", text, kMayMiss); }
};
constexpr std::array<const char*, 12> EnumNames(Noted::What) {
  return {"calls-differ", "stalled",      "time-limit", "regroup",  "not-restarted", "met",
          "guard-died",   "accomplished", "stacks",     "restarts", "gap",           "worked-alone"};
}
// The generation could not start: the one before is the last.
struct Withdrawn {
  static constexpr char kName[] = "withdrawn";
  void Fields(auto&) {}
};
// How far a host's clock is ahead of the root's, and how wrong that may be: half the round trip that measured
// it.
struct HostClock {
  static constexpr char kName[] = "host-clock";
  std::string host;
  std::int64_t ahead_ns = 0;
  std::uint64_t uncertainty_ns = 0;
  void Fields(auto& io) {
    io("host", host), io("ahead_ns", ahead_ns, kAnyClock), io("uncertainty_ns", uncertainty_ns, kAnyCount);
  }
};
// Every process of the generation has ended.
struct Over {
  static constexpr char kName[] = "over";
  void Fields(auto&) {}
};
// The job ended while no rank ran: before this generation, or while it waited to be restarted.
struct EndedBetween {
  static constexpr char kName[] = "ended-between";
  std::uint64_t generation = 0;
  int signal = 0;               // 0: see the others
  std::string time_limit = {};  // that it reached
  bool guard_died = false;
  void Fields(auto& io) {
    io("generation", generation, kAnyCount), io("signal", signal, wire::kAnySignal, kMayMiss);
    io("time_limit", time_limit, kMayMiss), io("guard_died", guard_died, kMayMiss);
  }
};
struct NotStarted {
  static constexpr char kName[] = "not-started";
  std::string why;
  void Fields(auto& io) { io("why", why); }
};
// Lines of output that the console's reader did not take.
struct NotShown {
  static constexpr char kName[] = "not-shown";
  std::uint64_t lines = 0;
  void Fields(auto& io) { io("lines", lines, kAnyCount); }
};

using Any = std::variant<Opened, Earlier, Began, Started, Joined, Left, Reported, MpiStarted, MpiFinished,
                         MpiAborted, MpiServerLost, Ended, CrashedAt, EndedEarly, InnerFailed, FailedFirst,
                         Overrode, Places, MovedOn, PrintedError, SaidBefore, SaidLast, Recognised, HostLost,
                         HostsApart, Isolated, Interrupted, Noted, Withdrawn, Over, EndedBetween, NotStarted,
                         NotShown, Straggled, HostClock>;

}  // namespace dtrun::verdict::fact

namespace dtrun::verdict {

// A line of events.log.
struct Entry {
  std::chrono::nanoseconds at{};  // since the start of the job
  std::string from;               // "root", "rank 3", "host node1"
  fact::Any fact;
};

}  // namespace dtrun::verdict

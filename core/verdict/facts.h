// What the root saw of one generation, without judgement: input of the verdict.
//
// Values, filled by the controller, read by cause.h and verdict.h. Any thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/failures/log.h"
#include "core/process/ending.h"
#include "core/stacks/place.h"
#include "core/verdict/isolated_ranks.h"

namespace dtrun::verdict {

// A rank has called MPI_Abort.
struct MpiAbort {
  int code = 0;
  std::string message;  // may be empty
  bool broke = false;   // it did not: what it said to its PMI server made no sense, as `message` says
};

// A rank blames another one, through the store.
struct PeerReport {
  int peer = -1;  // -1: unknown
  std::string what;
  std::vector<int> members = {};  // of the communicator in which it was missed; empty: all ranks
};

// A variable by which ranks find each other, such as MASTER_PORT, that a rank's program has changed for
// itself.
struct Override {
  int rank = 0;
  std::string name, given, now;
};

// What the process of a rank did when it was looked at (core/stacks/doing.h), and what it had used by then.
struct RankDoing {
  int rank = 0;  // the first one that lives in it
  stacks::Stand stand = stacks::Stand::kUnknown;
  bool trains = false;            // a step of training is under way; not told to other hosts
  bool joins = false;             // it looks for the other ranks, at the start
  bool may_handle = true;         // an error that it has met may be on its way (core/stacks/handler.h)
  std::string phrase;             // "in time.sleep at train.py:40"
  std::string beside = {};        // what it waits for there, of which more is known; may be empty
  std::string text;               // its stacks
  std::int64_t processor_ms = 0;  // with all processes below it
  std::int64_t bytes = 0;         // read and written, likewise
  int waits_for = -1;             // the rank that holds the lock of a file for which it waits; -1: none

  std::vector<Override> overrides = {};

  // "in flock at train.py:40 (a lock that rank 0 holds)"
  std::string Said() const { return beside.empty() ? phrase : phrase + " (" + beside + ")"; }
};

struct RankFacts {
  // A rank whose process the one of this host, an mpirun, has started.
  struct Inner {
    int rank = 0;
    pid_t pid = 0;
    process::Ending ending;
  };

  int rank = 0;   // the first one that lives in the process
  int count = 1;  // how many do
  std::optional<Inner>
      failed;  // of these the one that failed first, where that is known; then `ending` is its
  std::string host;
  pid_t pid = 0;
  std::filesystem::path program;  // the first word of its command
  bool joined = false;            // reached dtrun_init
  bool left = false;              // reached dtrun_finalize
  // Where MPI is served.
  enum class Mpi : std::uint8_t { kNone, kStarted, kFinished } mpi = Mpi::kNone;
  std::optional<MpiAbort> abort;                 // which fails the rank, however it ends
  std::optional<process::Ending> ending;         // unset: it could not be ended
  std::chrono::nanoseconds ended_at{};           // since the start of the run
  int signal_sent = 0;                           // last one dtrun sent before it ended, to end it
  std::vector<std::string> tail;                 // its last lines of output
  std::vector<std::filesystem::path> log_files;  // that have all of it
  bool log_cut = false;                          // they could not be written to the end
  std::optional<failures::LogFinding> known;     // what its output says, looked for in the first cause
  std::vector<PeerReport> reports;               // what it said of others
  // Of a rank that lived when another one failed because a peer was missing: its last lines until then, and
  // what it did.
  std::vector<std::string> before;
  std::optional<RankDoing> doing;
  std::vector<RankDoing> inside;  // in place of `doing` where its process, an mpirun, has started others
  int locked_out_by = -1;  // the rank that held the lock of a file for which it was seen to wait; -1: none

  std::vector<Override> overrides = {};  // as last seen

  void Saw(const RankDoing& seen) {
    if (locked_out_by < 0) locked_out_by = seen.waits_for;
    if (!seen.overrides.empty()) overrides = seen.overrides;
    if (count == 1) {
      doing = seen;
    } else {
      inside.push_back(seen);
    }
  }

  // Not because dtrun asked it to end.
  bool FailedByItself() const { return ending && ending->failed() && signal_sent == 0; }
  // A peer of the same process ended with it, or ended it.
  bool IsOfAnother(const PeerReport& report) const {
    return report.peer >= 0 && (report.peer < rank || report.peer >= rank + count);
  }
  bool BlamesPeer() const {
    return std::any_of(reports.begin(), reports.end(),
                       [this](const PeerReport& report) { return IsOfAnother(report); });
  }
  // Whose failure it is.
  int blamed() const { return failed ? failed->rank : rank; }
};

// A host that could not be reached any more.
struct HostLoss {
  std::string host;
  std::string why;
  bool agent_died = false;  // else the network or the whole host is gone
  std::chrono::nanoseconds at{};
  std::string next = {};  // what the user can do; empty: what is usual
};

// In the folder of a generation's logs: what its ranks did, each time they were looked at.
inline constexpr char kStacksFile[] = "stacks.txt";

// What served the MPI libraries of a host has ended while ranks needed it.
struct MpiServerLoss {
  std::string host;
  std::string how;          // "died of signal 11 (SIGSEGV)"
  std::vector<int> needed;  // ranks between MPI_Init and MPI_Finalize
  std::chrono::nanoseconds at{};
};

struct Facts {
  std::string job;
  std::string logs;  // folder of this generation's logs
  std::uint64_t generation = 0;
  std::chrono::nanoseconds duration{};
  std::vector<RankFacts> ranks;  // by rank
  std::vector<HostLoss> losses;  // in the order they were noticed
  int first_failed = -1;         // index into ranks; -1: none failed before the run was ended
  std::string regroup;           // why it was ended to go on with other hosts; empty: it was not
  int interrupt = 0;             // signal that ended the run before any rank failed
  std::optional<IsolatedRanks> isolated_ranks;   // which fail the job
  std::optional<MpiServerLoss> mpi_server_loss;  // which ended the run
  bool stacks = false;                           // kStacksFile was written
  std::string calls_differ;  // "call 1 on 'world' differs: rank 0 calls ...", as the recorder found; or empty
  std::string stalled;       // for how long nobody worked, which fails the job; empty: it does not
  std::string time_limit;    // job.time_limit, which the job has reached; empty: it has not
  int regroups = 0;          // before it, because hosts came or left
  bool guard_died = false;   // dtrun's first process was killed
  bool restarts = false;     // another generation follows
  std::string not_restarted;  // why the one that was to follow could not begin; empty: none was to
  bool names_class = true;    // also where the program is at fault: restarts depend on it
  bool accomplished = false;  // by the ranks whose success is the job's, before the others ended
};

}  // namespace dtrun::verdict

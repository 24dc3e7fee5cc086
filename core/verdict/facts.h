// What the root observed of one generation, without judgement: the input of the verdict.
//
// Plain values. story.h makes them from the recorded facts; cause.h and verdict.h read them. Any thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/contract/awaited.h"
#include "core/contract/recorded_call.h"
#include "core/failures/finding.h"
#include "core/process/ending.h"
#include "core/stacks/kernel.h"
#include "core/stacks/place.h"
#include "core/verdict/gpu_use.h"
#include "core/wire/limits.h"

namespace dtrun::verdict {

// Bounds of what events.log holds, so that arithmetic with its numbers cannot overflow.
inline constexpr wire::Between<std::int64_t> kAnyTime{0, std::int64_t{50} * 366 * 86'400 * 1'000'000'000};
inline constexpr wire::Between<std::int64_t> kAnyCount{0, std::int64_t{1} << 53};
inline constexpr wire::Between kAnyInt{std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};

// A rank has called MPI_Abort.
struct MpiAbort {
  int code = 0;
  std::string message;  // may be empty
  bool broke = false;   // not an MPI_Abort: the rank broke the PMI protocol, as `message` explains
};

// A rank blames another one, through the store.
struct PeerReport {
  int peer = -1;  // -1: unknown
  std::string what;
  std::vector<int> members = {};  // ranks of the communicator in which it was missing; empty: all ranks
  ErrorId id = {};                // what happened, and its arguments (core/base/error_id.h)
  std::map<std::string, std::string> args = {};
};

// A rendezvous variable, such as MASTER_PORT, that a rank's program has changed for itself.
struct Override {
  int rank = 0;
  std::string name, given, now;
  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank);
    io("name", name, wire::kMostName, wire::kPrintable);
    io("given", given, wire::kAny, wire::kPrintable);
    io("now", now, wire::kAny, wire::kPrintable);
  }
};

// A snapshot of a rank's process (core/stacks/doing.h) with the resources it had used by then.
struct RankDoing {
  int rank = 0;  // the first rank in the process
  stacks::Stand stand = stacks::Stand::kUnknown;
  bool trains = false;               // a training step is in progress; not sent to other hosts
  bool joins = false;                // it is connecting to the other ranks at startup
  bool loads = false;                // it waits for a worker of its data loader
  bool saves = false;                // it writes a checkpoint
  bool may_handle = true;            // it may be handling an error (core/stacks/place.h)
  std::string phrase;                // "in time.sleep at train.py:40"
  std::string beside = {};           // details of what it waits for; may be empty
  std::string text;                  // its stacks
  std::int64_t processor_ms = 0;     // including all descendant processes
  std::int64_t kernel_ms = 0;        // the part of it in the kernel
  std::int64_t bytes = 0;            // read and written, including descendants
  std::int64_t resident = 0;         // bytes in memory, including descendants; shared ones count in each
  std::int64_t faults = 0;           // page faults that waited for a disk, including descendants
  std::int64_t network = 0;          // bytes received and sent by all of its host, without loopback
  int waits_for = -1;                // the rank that holds the file lock it waits for; -1: none
  pid_t pid = 0;                     // the process that was read; not sent to other hosts
  bool runs = false;                 // its main thread is on a processor, or ready to run
  bool naps = false;                 // it sleeps for less than a second
  stacks::Scheduled scheduled = {};  // its main thread; only the number of sleeps is sent to other hosts
  std::uint64_t spot = 0;  // tells its waits apart if it is not Python; 0: unknown (stacks/kernel.h)

  std::vector<Override> overrides = {};  // as the look found them
  std::string plugin = {};  // the plugin's member that it is in beyond its time: "backend 'x', in its init"
  bool due_soon = false;    // it is in another, the time of which is over soon
  std::optional<contract::RecordedCall> call = {};  // unset: it has made none that a recorder has
  std::optional<contract::Awaited> awaited = {};    // by the call under way; unset: unknown
  std::vector<contract::Membership> groups = {};    // its communicators that dtrun records
  std::optional<GpuUse> gpu = {};                   // of NVIDIA, that the process uses
  bool in_source = false;                           // the phrase names a line of a source file

  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank);
    io("stand", stand, wire::Between{stacks::Stand::kUnknown, stacks::Stand::kElsewhere});
    io("joins", joins);
    io("loads", loads);
    io("saves", saves);
    io("may_handle", may_handle);
    io("phrase", phrase);
    io("in_source", in_source);
    io("beside", beside);
    io("text", text);
    io("processor_ms", processor_ms, wire::kNotNegative);
    io("kernel_ms", kernel_ms, wire::kNotNegative);
    io("runs", runs);
    io("naps", naps);
    io("sleeps", scheduled.sleeps, wire::kNotNegative);
    io("spot", spot);
    io("bytes", bytes, wire::kNotNegative);
    io("resident", resident, wire::kNotNegative);
    io("faults", faults, wire::kNotNegative);
    io("network", network, wire::kNotNegative);
    io("waits_for", waits_for, wire::kAnyRankOrNone);
    io("overrides", overrides, wire::kMostEntries);
    io("plugin", plugin, wire::kMostName);
    io("due_soon", due_soon);
    io("call", call);
    io("awaited", awaited);
    io("groups", groups, wire::Most{64});
    io("gpu", gpu);
  }
  // "in flock at train.py:40 (a lock that rank 0 holds)"
  std::string Said() const { return beside.empty() ? phrase : phrase + " (" + beside + ")"; }
  // It is not Python and takes short sleeps, maybe between two looks at a request.
  bool MayPoll() const { return naps && spot != 0 && stand == stacks::Stand::kMayWait && beside.empty(); }
  // Tells one wait from the next: by the call that it is in, or else by how often it has gone to sleep.
  std::int64_t Wait() const {
    if (!call || !call->under_way) return scheduled.sleeps;
    return -2 * static_cast<std::int64_t>(call->number) - (call->message ? 1 : 0);
  }
};

// A rank that clearly made the others wait, most of the time of a generation.
struct Straggler {
  int rank = 0;
  int percent = 0;  // of the looks
  int looks = 0;
  std::string place;  // "in time.sleep at train.py:40": its most frequent one; may be empty
  // A process of another program that kept its processor busy; 0: none is known.
  pid_t rival = 0;
  std::string rival_command = {};
  std::vector<int> whom = {};  // it made wait; empty: all others
  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank), io("percent", percent, wire::Between{0, 100});
    io("looks", looks, wire::Between{0, 1 << 20}), io("place", place, wire::kMayMiss);
    io("rival", rival, wire::Between{0, wire::kAnyPid.most}, wire::kMayMiss);
    io("rival_command", rival_command, wire::kMayMiss);
    io("whom", whom, wire::kMostEntries, wire::kAnyRank, wire::kMayMiss);
  }
};

// A file lock that another rank held.
struct FileLock {
  int holder = 0;
  std::chrono::nanoseconds seen{};  // since the start of the run
};

struct RankFacts {
  // A rank in a process that this host's process (an mpirun) started.
  struct Inner {
    int rank = 0;
    pid_t pid = 0;
    process::Ending ending;
  };

  int rank = 0;                 // the first rank in the process
  int count = 1;                // number of ranks in the process
  std::optional<Inner> failed;  // the rank of these that failed first, if known; then `ending` is its ending
  std::string host;
  pid_t pid = 0;
  std::filesystem::path program;  // the first word of its command
  bool joined = false;            // reached dtrun_init
  bool left = false;              // reached dtrun_finalize
  // Only with an MPI server.
  enum class Mpi : std::uint8_t { kNone, kStarted, kFinished } mpi = Mpi::kNone;
  std::optional<MpiAbort> abort;                 // fails the rank, however it ends
  std::optional<process::Ending> ending;         // unset: dtrun could not end it
  std::chrono::nanoseconds ended_at{};           // since the start of the run
  std::string crashed_at;                        // "in step at solver.c:42"; empty: unknown
  int signal_sent = 0;                           // last signal that dtrun sent to end it, before it ended
  std::vector<std::string> tail;                 // its last lines of output
  bool unheard = false;                          // the record does not tell these lines
  std::vector<std::filesystem::path> log_files;  // with its complete output
  bool log_cut = false;                          // the logs are incomplete: a write failed
  std::optional<failures::LogFinding> known;     // known failure in its output; set for the first cause only
  std::vector<PeerReport> reports;               // its reports about other ranks
  // For a rank that was alive when another rank failed because of a missing peer: its last lines until then,
  // and its activity.
  std::vector<std::string> before;
  std::optional<RankDoing> doing;
  std::vector<RankDoing> inside;  // instead of `doing` if its process, an mpirun, has started others
  std::optional<RankDoing> seen;  // at the last look of all, which may be long ago
  std::optional<FileLock> lock;   // that it was seen waiting for, unless it has moved on since
  std::optional<std::chrono::nanoseconds> erred_at;  // its last traceback began

  std::vector<Override> overrides = {};

  // A failure that dtrun's signals did not cause.
  bool FailedByItself() const { return ending && ending->failed() && signal_sent == 0; }
  // Peers in the same process do not count: they share its end.
  bool IsOfAnother(const PeerReport& report) const {
    return report.peer >= 0 && (report.peer < rank || report.peer >= rank + count);
  }
  bool BlamesPeer() const {
    return std::any_of(reports.begin(), reports.end(),
                       [this](const PeerReport& report) { return IsOfAnother(report); });
  }
  // The rank to blame for this process's failure.
  int blamed() const { return failed ? failed->rank : rank; }
};

// Ranks that never joined each other, which their programs do not notice: each trains alone on the whole data
// set and succeeds.
struct IsolatedRanks {
  std::string what;  // "the ranks have not joined each other: each has ..."
  std::string next;  // what to do
};

// A host that became unreachable.
struct HostLoss {
  std::string host;
  std::string why;
  bool agent_died = false;  // else the network or the whole host is gone
  std::chrono::nanoseconds at{};
  std::string next = {};  // what the user can do; empty: the default advice
};

// In a generation's log folder: the activity of its ranks, one entry per look.
inline constexpr char kStacksFile[] = "stacks.txt";

// A host's MPI server ended while ranks needed it.
struct MpiServerLoss {
  std::string host;
  std::string how;          // "died of signal 11 (SIGSEGV)"
  std::vector<int> needed;  // ranks between MPI_Init and MPI_Finalize
  std::chrono::nanoseconds at{};
};

struct Facts {
  // The facts of the process with this rank; null: there is none.
  const RankFacts* Find(int rank) const {
    const auto after = std::ranges::upper_bound(ranks, rank, {}, &RankFacts::rank);
    if (after == ranks.begin()) return nullptr;
    const RankFacts& process = *std::prev(after);
    return rank < process.rank + process.count ? &process : nullptr;
  }

  std::string job;
  std::string logs;  // folder of this generation's logs
  std::uint64_t generation = 0;
  std::chrono::nanoseconds duration{};  // of this generation
  std::chrono::nanoseconds elapsed{};   // since the job began, at this generation's end
  std::vector<RankFacts> ranks;         // by rank
  std::vector<HostLoss> losses;         // in order of detection
  int first_failed = -1;                // index into ranks; -1: none failed before the run was ended
  std::string regroup;                  // why the run was ended to regroup on other hosts; empty: it was not
  int interrupt = 0;                    // signal that ended the run before any rank failed
  std::string interrupt_host;           // where dtrun got it; empty: on the root's host
  std::optional<IsolatedRanks> isolated_ranks;   // fails the job
  std::optional<MpiServerLoss> mpi_server_loss;  // ended the run
  bool stacks = false;                           // kStacksFile was written
  std::string calls_differ;   // the mismatch found by the recorder: "call 1 on 'world' differs: rank 0 calls
                              // ..."; or empty
  std::string stalled;        // how long no rank made progress, which fails the job; empty: no stall
  std::string time_limit;     // the job.time_limit that the job reached; empty: not reached
  bool between = false;       // it ended while no rank ran: these ranks had ended before
  int regroups = 0;           // number of regroups before, because hosts joined or left
  bool guard_died = false;    // dtrun's first process was killed
  bool restarts = false;      // another generation follows
  std::string not_restarted;  // why the planned restart could not begin; empty: none was planned
  bool names_class = true;    // name the exit class even for program errors, because restarts depend on it
  bool accomplished = false;  // the ranks that decide the job's success succeeded before the others ended
  bool met = false;           // a rank has joined another
  std::string apart = {};     // hosts that cannot reach each other, found after a failure of the network
  bool cut = false;           // the record ends before the run: dtrun still runs, or was killed
  std::optional<Straggler> straggler = {};  // says nothing about a failure
  // The ranks did not join each other, which does not fail the job: what to do; or empty.
  std::string worked_alone = {};
};

// One generation in short, as verdict.json lists it.
struct GenerationSummary {
  static constexpr std::size_t kFirst = 16;    // kept from the beginning of a job
  static constexpr std::size_t kLatest = 239;  // kept from its end, beside the last one

  std::uint64_t generation = 0;
  std::string result;      // "succeeded", "failed", ...: as in verdict.json
  std::string exit_class;  // empty: none
  int exit_code = 0;
  std::chrono::nanoseconds duration{};
  std::optional<int> first_failed_rank;
  std::string lost_host;  // empty: none
  int interrupt = 0;      // signal; 0: none

  void Fields(auto& io) {
    io("generation", generation, kAnyCount), io("result", result), io("exit_class", exit_class);
    io("exit_code", exit_code, wire::kAnyExitCode), io("duration", duration, kAnyTime);
    io("first_failed_rank", first_failed_rank, wire::kAnyRank), io("lost_host", lost_host);
    io("interrupt", interrupt, wire::kAnySignal);
  }
};

}  // namespace dtrun::verdict

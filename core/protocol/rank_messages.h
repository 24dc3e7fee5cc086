// Messages about the ranks of a host: its preparation, their processes, their output, what they do, and what
// their MPI libraries need. Commands of the root and events of the host (core/protocol/host.h).
//
// Values; any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/contract/checker.h"
#include "core/contract/member_mark.h"
#include "core/contract/window.h"
#include "core/output/output.h"
#include "core/plan/plan.h"
#include "core/pmi/server.h"
#include "core/protocol/phase.h"
#include "core/verdict/facts.h"

namespace dtrun::protocol {

inline constexpr wire::Between kSomeSignal{1, wire::kAnySignal.most};

// The commands. A host is prepared, started, and asked to end. Stop and Kill may come at any time, even
// before Start or twice.

// Acquires what the processes need: the port, the store's socket, the flight recorder.
struct Prepare {
  static constexpr Rule kRule{"Prepare", kWhileIdle};
  std::uint64_t generation = 0;
  int world_size = 0;
  std::string job_key;
  int master_port = -1;                  // to hold for rank 0; 0: any free one; -1: rank 0 is on another host
  std::string master_port_place;         // prefix of errors about it
  std::vector<int> task_ranks;           // ranks here that need their own port
  std::vector<plan::Process> processes;  // of this host, by rank; tokens unresolved
  std::vector<std::string> environment;  // base for the ranks; empty: the host's own
  std::chrono::nanoseconds grace{};      // for processes that ranks leave behind
  std::uint64_t memory = 0;  // memory limit of all ranks of this host together, in bytes; 0: no limit
  pmi::Job mpi;              // what to serve to the ranks' MPI libraries
  std::map<std::string, std::string> options;  // Plan::given
  void Fields(auto& io) {
    io("generation", generation);
    io("world_size", world_size, wire::Between{1, 1 << 20});
    io("job_key", job_key, wire::kMostName);
    io("master_port", master_port, wire::Between{-1, wire::kAnyPort.most});
    io("master_port_place", master_port_place, wire::kMostName, wire::kPrintable);
    io("task_ranks", task_ranks, wire::kMostEntries, wire::Between{0, world_size - 1});
    io("processes", processes, wire::kMostProcesses);
    io("environment", environment, wire::kMostEntries);
    io("grace", grace, wire::kUpToADay);
    io("memory", memory);
    io("mpi", mpi);
    io("options", options, wire::kMostEntries);
  }
};
struct Start {
  static constexpr Rule kRule{"Start", In({Phase::kPrepared})};
  std::map<std::string, std::string> tokens;  // for plan::Resolve
  // Ports where its ranks may join others; empty: do not watch for joining.
  std::vector<std::uint16_t> rendezvous_ports;
  bool watches_waits = false;  // look at the ranks regularly; Gone has the result
  void Fields(auto& io) {
    io("tokens", tokens, wire::kMostEntries);
    io("rendezvous_ports", rendezvous_ports, wire::kMostEntries);
    io("watches_waits", watches_waits);
  }
};
// SIGSTOP and SIGCONT go to the ranks' process groups. Other signals go only to the ranks: their children may
// not expect a signal such as USR1 and die of it.
struct Signal {
  static constexpr Rule kRule{"Signal", kJoined};
  int number = 0;
  void Fields(auto& io) { io("signal", number, kSomeSignal); }
};
// Signals all process groups to end.
struct Stop {
  static constexpr Rule kRule{"Stop", kJoined};
  int signal = 0;
  void Fields(auto& io) { io("signal", signal, kSomeSignal); }
};
struct Kill {
  static constexpr Rule kRule{"Kill", kJoined};
  void Fields(auto&) {}
};
// The answer to Offered: the parts of all hosts, or an error.
struct Exchanged {
  static constexpr Rule kRule{"Exchanged", kJoined};
  std::string exchange;
  std::string error;  // empty: none
  std::string bytes;
  void Fields(auto& io) {
    io("exchange", exchange);
    io("error", error);
    io("bytes", bytes);
  }
};
// Asks what the ranks are doing. The answer comes within kLookPatience and leaves out ranks that cannot be
// inspected. Their processes are neither stopped nor notified, except ranks that are about to be ended: a
// tool stops these for a moment to take native stacks.
struct Inspect {
  static constexpr Rule kRule{"Inspect", kWithRanks, kMayBeLate};
  std::uint32_t number = 0;
  std::vector<int> closely = {};  // ranks
  bool recorders = true;          // asks torch's recorder in each rank, which takes the rank up to 30 ms
  bool looks = false;             // tells what the regular looks have seen so far
  void Fields(auto& io) {
    io("number", number);
    io("closely", closely, wire::kMostProcesses);
    io("recorders", recorders);
    io("looks", looks);
  }
};

// Asks for the host's time, and its answer: how far its clock is from the root's.
struct ReadClock {
  static constexpr Rule kRule{"ReadClock", kWithRanks, kMayBeLate};
  std::uint32_t number = 0;
  void Fields(auto& io) { io("number", number); }
};
// Nanoseconds of CLOCK_REALTIME.
inline std::uint64_t WallClock() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}
struct ClockRead {
  static constexpr Rule kRule{"ClockRead", kWithRanks, kMayBeLate};
  std::uint32_t number = 0;
  std::uint64_t nanoseconds = 0;  // CLOCK_REALTIME
  void Fields(auto& io) {
    io("number", number);
    io("nanoseconds", nanoseconds);
  }
};

// Calls of ranks on communicators that span hosts. An event of the ranks' host, and a command to all others.
struct Called {
  static constexpr Rule kRule{"Called", kWithRanks, kMayBeLate};
  std::vector<contract::Window> windows;
  void Fields(auto& io) { io("windows", windows, wire::kMostProcesses); }
};
// Mismatched calls: one host finds them and reports to the root, which sends them to all hosts for their
// ranks.
struct Differed {
  static constexpr Rule kRule{"Differed", kWithRanks, kMayBeLate};
  contract::Difference difference;
  void Fields(auto& io) { io("difference", difference); }
};

// The events. Prepare is followed by Prepared or Refused, Start by Started or Refused. Gone or Lost is the
// last event of a generation.
struct Prepared {
  static constexpr Rule kRule{"Prepared", In({Phase::kPreparing})};
  int master_port = -1;
  std::vector<std::pair<int, int>> task_ports;  // rank and port
  std::string store;                            // path of the socket
  std::string recorder;                         // path
  void Fields(auto& io) {
    io("master_port", master_port);
    io("task_ports", task_ports, wire::kMostEntries);
    io("store", store, wire::kMostName);
    io("recorder", recorder, wire::kMostName);
  }
};
// Nothing runs on this host until the next Prepare. Also an answer to Survey.
struct Refused {
  static constexpr Rule kRule{"Refused", In({Phase::kIdle, Phase::kPreparing, Phase::kStarting})};
  Error error;
  void Fields(auto& io) {
    io("code", error.code, wire::Between{DTRUN_INVALID_ARGUMENT, DTRUN_INTERNAL});
    io("text", error.text);
  }
};
struct Started {
  static constexpr Rule kRule{"Started", In({Phase::kStarting})};
  std::vector<pid_t> pids;  // by process
  void Fields(auto& io) { io("pids", pids, wire::kMostEntries, wire::kAnyPid); }
};
struct Output {
  static constexpr Rule kRule{"Output", kServed, kMayBeLate};
  int rank = 0;
  output::Stream stream = output::Stream::kOut;
  std::string_view bytes;  // empty: the stream has ended
  void Fields(auto& io) {
    io("rank", rank);
    io("stream", stream, wire::Between{output::Stream::kOut, output::Stream::kErr});
    io.Rest("bytes", bytes);
  }
};
struct Ended {
  static constexpr Rule kRule{"Ended", kWithRanks};
  int rank = 0;
  process::Ending ending;
  int signal_sent = 0;                // last signal that dtrun sent to end it
  contract::UnderWay under_way = {};  // what it was doing when it exited by itself
  void Fields(auto& io) {
    io("rank", rank);
    io("ending", ending);
    io("signal_sent", signal_sent, wire::kAnySignal);
    io("under_way", under_way);
  }
};
// What a rank has added to its trace (core/contract/trace.h), in order.
struct Traced {
  static constexpr Rule kRule{"Traced", kServed, kMayBeLate};
  int rank = 0;
  std::string_view bytes;
  void Fields(auto& io) {
    io("rank", rank);
    io.Rest("bytes", bytes);
  }
};
// The end of a rank that another program of the plan has started.
struct RankEnded {
  static constexpr Rule kRule{"RankEnded", kWithRanks, kMayBeLate};
  int rank = 0;
  pid_t pid = 0;
  process::Ending ending;
  void Fields(auto& io) {
    io("rank", rank);
    io("pid", pid, wire::kNotNegative);
    io("ending", ending);
  }
};
// One line for the user.
struct Said {
  static constexpr Rule kRule{"Said", kJoined};
  std::string line;
  void Fields(auto& io) { io("line", line); }
};
// Whether ranks of this host have joined others (core/node/rank_contacts.h). Sent again when there is news.
struct RendezvousSeen {
  static constexpr Rule kRule{"RendezvousSeen", kWithRanks, kMayBeLate};
  bool joined = false;
  std::vector<std::string> frameworks;  // loaded by a rank
  bool alone = false;                   // a rank was seen training in a world of its own
  // A framework has been loaded for so long that the rank should have joined.
  bool late = false;
  std::vector<verdict::Override> overrides = {};  // complete lists of the ranks with changes
  void Fields(auto& io) {
    io("joined", joined);
    io("frameworks", frameworks, wire::Most{64}, wire::kMostName);
    io("alone", alone);
    io("late", late);
    io("overrides", overrides, wire::kMostEntries);
  }
};
// What regular looks at a rank have seen: a letter for each moment, the same moments on all hosts.
struct RankLooks {
  static constexpr char kMissed = ' ', kOther = '.';
  static constexpr char kWaits = 'w';       // for other ranks
  static constexpr char kStillWaits = 'v';  // the same, and it has not woken since the look before
  static constexpr char kComputes = 'c';    // elsewhere, on a processor or ready to run
  static constexpr char kElsewhere = 'e';   // elsewhere, asleep
  int rank = 0;
  std::uint32_t every = 1;  // interval, in units of the shortest one; a power of two
  std::string letters;
  int active_percent = -1;  // of the time, its first thread was on a processor or ready to run; -1: unknown
  std::string place = {};   // where it was most often while it was elsewhere
  pid_t rival = 0;  // the process of another program that most often kept its processors busy; 0: none
  std::string rival_command = {};
  int rival_looks = 0;  // in so many looks it, or another such process, did so
  // Whom it waited for at each moment: kAnyone, or the index into `awaited` above kFirstAwaited.
  static constexpr char kAnyone = ' ', kFirstAwaited = '!', kLastAwaited = '~';
  std::string whom = {};
  std::vector<contract::Awaited> awaited = {};
  static constexpr std::size_t kMostGroups = 64;
  std::vector<contract::Membership> groups = {};  // that it has been in
  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank);
    io("every", every, wire::Between{1u, 1u << 30});
    io("letters", letters, wire::kMostName, wire::kPrintable);
    io("active_percent", active_percent, wire::Between{-1, 100});
    io("place", place, wire::kMostName, wire::kPrintable);
    io("rival", rival, wire::Between{0, wire::kAnyPid.most});
    io("rival_command", rival_command, wire::kMostName, wire::kPrintable);
    io("rival_looks", rival_looks, wire::Between{0, 1 << 20});
    io("whom", whom, wire::kMostName, wire::kPrintable);
    io("awaited", awaited, wire::Most{kLastAwaited - kFirstAwaited + 1});
    io("groups", groups, wire::Most{kMostGroups});
  }
};
struct Inspected {
  static constexpr Rule kRule{"Inspected", kWithRanks, kMayBeLate};
  std::uint32_t number = 0;               // of the request
  std::vector<verdict::RankDoing> ranks;  // only living ones
  std::uint64_t calls = 0;                // changes when any of them has called a recorded collective
  std::vector<RankLooks> looks = {};
  void Fields(auto& io) {
    io("number", number);
    io("ranks", ranks, wire::kMostProcesses);
    io("calls", calls);
    io("looks", looks, wire::kMostProcesses);
  }
};
// Where the program's own code crashed: "in step at solver.c:42".
struct CrashedAt {
  int rank = 0;
  std::string place;
  void Fields(auto& io) {
    io("rank", rank, wire::kAnyRank);
    io("place", place, wire::kMostName, wire::kPrintable);
  }
};
// Every process of this generation on this host has ended, including those that ranks left behind.
struct Gone {
  static constexpr Rule kRule{"Gone", In({Phase::kPrepared, Phase::kRunning})};
  std::string calls;  // the last calls of the ranks, if any rank failed
  std::vector<RankLooks> looks = {};
  std::vector<CrashedAt> crashes = {};
  void Fields(auto& io) {
    io("calls", calls);
    io("looks", looks, wire::kMostProcesses);
    io("crashes", crashes, wire::kMostProcesses);
  }
};
// A signal that the user sent to dtrun on this host.
struct Asked {
  static constexpr Rule kRule{"Asked", kJoined};
  int signal = 0;
  void Fields(auto& io) { io("signal", signal, kSomeSignal); }
};
// The host is unreachable or about to leave; its agent ends what runs there.
struct Lost {
  static constexpr Rule kRule{"Lost", kAnyPhase};
  std::string why;
  bool agent_died = false;  // false: the network or the whole host is gone
  std::string next = {};    // next step for the user, if known; not sent over the network
  bool refused = false;     // the agent cannot serve this job: starting it again does not help
  void Fields(auto& io) {
    io("why", why);
    io("agent_died", agent_died);
    io("refused", refused);
  }
};

// Data from ranks of this host for MPI libraries on other hosts (core/pmi/exchange.h).
struct Offered {
  static constexpr Rule kRule{"Offered", kServed, kMayBeLate};
  pmi::Part part;
  void Fields(auto& io) { io("part", part); }
};
// A rank has called MPI_Init, MPI_Finalize, MPI_Abort.
struct MpiStarted {
  static constexpr Rule kRule{"MpiStarted", kServed, kMayBeLate};
  int rank = 0;
  void Fields(auto& io) { io("rank", rank); }
};
struct MpiFinished {
  static constexpr Rule kRule{"MpiFinished", kServed, kMayBeLate};
  int rank = 0;
  void Fields(auto& io) { io("rank", rank); }
};
struct MpiAborted {
  static constexpr Rule kRule{"MpiAborted", kServed, kMayBeLate};
  int rank = 0;
  int code = 0;
  std::string message;  // may be empty
  bool broke = false;   // it did not call MPI_Abort but sent an invalid PMI message, see `message`
  void Fields(auto& io) {
    io("rank", rank);
    io("code", code);
    io("message", message);
    io("broke", broke);
  }
};
// The process that served this host's MPI libraries died on its own: "died of signal 11 (SIGSEGV)".
struct MpiServerLost {
  static constexpr Rule kRule{"MpiServerLost", kServed, kMayBeLate};
  std::string how;
  void Fields(auto& io) { io("how", how); }
};

}  // namespace dtrun::protocol

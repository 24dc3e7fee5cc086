// One host of the running job, as seen by the root: commands go in, events come out.
//
// Both are plain structs. LocalHost executes commands in this process. A remote host gets the same structs as
// messages (core/membership/remote_host.h), and its agent passes them to a LocalHost there. Policy belongs to
// the controller: which failure ends the job, how long ranks may take, and what is reported. Loop thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/contract/checker.h"
#include "core/contract/member_mark.h"
#include "core/contract/window.h"
#include "core/network/attempt.h"
#include "core/network/candidate.h"
#include "core/network/reach.h"
#include "core/output/output.h"
#include "core/plan/plan.h"
#include "core/pmi/server.h"
#include "core/verdict/facts.h"

namespace dtrun::protocol {

// The commands. A host is prepared, started, and asked to end. Stop and Kill may come at any time, even
// before Start or twice.

// Acquires what the processes need: the port, the store's socket, the flight recorder.
struct Prepare {
  std::uint64_t generation = 0;
  int world_size = 0;
  std::string job_key;
  int master_port = -1;                  // to hold for rank 0; 0: any free one; -1: rank 0 is on another host
  std::vector<int> task_ranks;           // ranks here that need their own port
  std::vector<plan::Process> processes;  // of this host, by rank; tokens unresolved
  std::vector<std::string> environment;  // base for the ranks; empty: the host's own
  std::chrono::nanoseconds grace{};      // for processes that ranks leave behind
  std::uint64_t memory = 0;  // memory limit of all ranks of this host together, in bytes; 0: no limit
  pmi::Job mpi;              // what to serve to the ranks' MPI libraries
};
struct Start {
  std::map<std::string, std::string> tokens;  // for plan::Resolve
  std::vector<std::uint16_t>
      rendezvous_ports;  // ports where its ranks may join others; empty: do not watch for joining
};
// SIGSTOP and SIGCONT go to the ranks' process groups. Other signals go only to the ranks: their children may
// not expect a signal such as USR1 and die of it.
struct Signal {
  int number = 0;
};
// Signals all process groups to end.
struct Stop {
  int signal = 0;
};
struct Kill {};
// The answer to Offered: the parts of all hosts, or an error.
struct Exchanged {
  std::string exchange;
  std::string error;  // empty: none
  std::string bytes;
};

// Calls of ranks on communicators that span hosts. An event of the ranks' host, and a command to all others.
struct Called {
  std::vector<contract::Window> windows;
};

// Mismatched calls: one host finds them and reports to the root, which sends them to all hosts for their
// ranks.
struct Differed {
  contract::Difference difference;
};

// Asks what the ranks are doing. The answer comes within kLookPatience and leaves out ranks that cannot be
// inspected. Their processes are neither stopped nor notified, except ranks that are about to be ended: a
// tool stops these for a moment to take native stacks.
struct Inspect {
  std::uint32_t number = 0;
  std::vector<int> closely = {};  // ranks
};

// The network between the hosts is determined after joining and before the first Prepare, which closes the
// listeners again (core/network/connectivity_check.h).

// Opens listeners on the interfaces of this host that network.interface allows.
struct Survey {
  int host = 0;  // its number
  std::string rule;
  std::string connectivity_key;
};
// Tries to reach other hosts through their listeners.
struct CheckConnectivity {
  std::vector<network::Peer> peers;
  bool by_device = true;
  std::chrono::nanoseconds limit{};
};
// Sends a bandwidth probe from this host's candidate `from` to a candidate of another host.
struct Measure {
  int from = 0;
  int peer = 0;
  network::Candidate to;
  bool by_device = true;
  double pace = 0;  // bits/s at most; 0: unlimited
};

using Command = std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, Survey, CheckConnectivity,
                             Measure, Called, Differed, Inspect>;

// The events. Prepare is followed by Prepared or Refused, Start by Started or Refused, Survey by Surveyed or
// Refused. Gone or Lost is the last event of a generation.
struct Prepared {
  int master_port = -1;
  std::vector<std::pair<int, int>> task_ports;  // rank and port
  std::string store;                            // path of the socket
  std::string recorder;                         // path
};
// Nothing runs on this host until the next Prepare.
struct Refused {
  Error error;
};
struct Started {
  std::vector<pid_t> pids;  // by process
};
struct Output {
  int rank = 0;
  output::Stream stream = output::Stream::kOut;
  std::string_view bytes;  // empty: the stream has ended
};
struct Ended {
  int rank = 0;
  process::Ending ending;
  int signal_sent = 0;                // last signal that dtrun sent to end it
  contract::UnderWay under_way = {};  // what it was doing when it exited by itself
};
// The end of a rank that another program of the plan has started.
struct RankEnded {
  int rank = 0;
  pid_t pid = 0;
  process::Ending ending;
};
// One line for the user.
struct Said {
  std::string line;
};
// Whether ranks of this host have joined others (core/node/rank_contacts.h). Sent again when there is news.
struct Looked {
  bool joined = false;
  std::vector<std::string> frameworks;  // loaded by a rank
  bool alone = false;                   // a rank was seen training in a world of its own
  // A framework has been loaded for so long that the rank should have joined.
  bool late = false;
  std::vector<verdict::Override> overrides = {};  // complete lists of the ranks with changes
};
// Every process of this generation on this host has ended, including those that ranks left behind.
struct Gone {
  std::string calls;  // the last calls of the ranks, if any rank failed
};
// A signal that the user sent to dtrun on this host.
struct Asked {
  int signal = 0;
};
// Data from ranks of this host for MPI libraries on other hosts (core/pmi/exchange.h).
struct Offered {
  pmi::Part part;
};
// A rank has called MPI_Init, MPI_Finalize, MPI_Abort.
struct MpiStarted {
  int rank = 0;
};
struct MpiFinished {
  int rank = 0;
};
struct MpiAborted {
  int rank = 0;
  int code = 0;
  std::string message;  // may be empty
  bool broke = false;   // it did not call MPI_Abort but sent an invalid PMI message, see `message`
};
// The process that served this host's MPI libraries died on its own: "died of signal 11 (SIGSEGV)".
struct MpiServerLost {
  std::string how;
};
// The host is unreachable or about to leave; its agent ends what runs there.
struct Lost {
  std::string why;
  bool agent_died = false;  // false: the network or the whole host is gone
  std::string next = {};    // next step for the user, if known; not sent over the network
};

struct Inspected {
  std::uint32_t number = 0;               // of the request
  std::vector<verdict::RankDoing> ranks;  // only living ones
  std::uint64_t calls = 0;                // changes when any of them has called a recorded collective
};

struct Surveyed {
  network::Offer offer;
};
struct ConnectivityChecked {
  std::vector<network::Attempt> attempts;
};
struct Measured {
  network::Throughput throughput;
};

using Event = std::variant<Prepared, Refused, Started, Output, Ended, Said, Gone, Asked, Offered, MpiStarted,
                           MpiFinished, MpiAborted, Lost, Surveyed, ConnectivityChecked, Measured, Called,
                           Differed, Looked, RankEnded, Inspected, MpiServerLost>;

class Host {
 public:
  using Sink = std::function<void(const Event&)>;

  virtual ~Host() = default;
  // Never calls the sink before it returns.
  virtual void Do(const Command& command) = 0;
  // Events now go to `sink`, that of the host's next commander; empty: events are dropped. Not while a
  // command is in progress.
  void Attach(Sink sink) { sink_ = std::move(sink); }

 protected:
  void Emit(const Event& event) const {
    if (sink_) sink_(event);
  }

 private:
  Sink sink_;
};

}  // namespace dtrun::protocol

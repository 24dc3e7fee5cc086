// One host of the running job, as the root sees it: commands in, events out.
//
// Both are plain structs. LocalHost carries them out in this process; a host elsewhere gets
// the same structs as messages (core/membership/remote_host.h) and its agent gives them to a
// LocalHost there. Policy is not here: which failure ends the job, how long ranks may take
// and what is said of it is the controller's. Loop thread.
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

// The commands. A host is prepared, started, and asked to end; Stop and Kill may come at
// any time, also before Start, and twice.

// Takes what the processes will need: the port, the store's socket, the flight recorder.
struct Prepare {
  std::uint64_t generation = 0;
  int world_size = 0;
  std::string job_key;
  int master_port = -1;                  // to hold for rank 0; 0: any free one; -1: rank 0 lives elsewhere
  std::vector<int> task_ranks;           // that need a port of their own here
  std::vector<plan::Process> processes;  // of this host, by rank; tokens unresolved
  std::vector<std::string> environment;  // of the ranks, under what the plan sets; empty: the host's own
  std::chrono::nanoseconds grace{};      // of what ranks leave behind
  std::uint64_t memory = 0;  // what the ranks of this host may hold together, in bytes; 0: no limit
  pmi::Job mpi;              // what to serve to their MPI libraries
};
struct Start {
  std::map<std::string, std::string> tokens;  // for plan::Resolve
  std::vector<std::uint16_t>
      rendezvous_ports;  // where its ranks may join others; empty: nobody asks whether they do
};
// SIGSTOP and SIGCONT go to the ranks' process groups, others to the ranks alone: their
// children may not expect a message such as USR1 and die of it.
struct Signal {
  int number = 0;
};
// Asks all process groups to end.
struct Stop {
  int signal = 0;
};
struct Kill {};
// The answer to Offered: the parts of all hosts, or why there are none.
struct Exchanged {
  std::string exchange;
  std::string error;  // empty: none
  std::string bytes;
};

// What ranks call on communicators that reach other hosts: an event of the host where they live, and a
// command to all others.
struct Called {
  std::vector<contract::Window> windows;
};

// Calls that differ: found by a host, which tells the root, which tells all hosts to tell their ranks.
struct Differed {
  contract::Difference difference;
};

// What do the ranks do? The answer comes within kLookPatience, without those that cannot be looked at. Their
// processes are neither stopped nor told, but for those that are about to be ended: native stacks of these
// are wanted, for which a tool stops them for a moment.
struct Inspect {
  std::uint32_t number = 0;
  std::vector<int> closely = {};  // ranks
};

// Which network joins the hosts is found out between joining and the first Prepare, which closes
// the listeners again (core/network/connectivity_check.h).

// Opens listeners on what network.interface leaves of this host's interfaces.
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
// Sends a bandwidth probe from the own candidate `from` to one of another host.
struct Measure {
  int from = 0;
  int peer = 0;
  network::Candidate to;
  bool by_device = true;
  double pace = 0;  // bits/s at most; 0: as fast as it goes
};

using Command = std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, Survey, CheckConnectivity,
                             Measure, Called, Differed, Inspect>;

// The events. After Prepare comes Prepared or Refused; after Start comes Started or Refused;
// Gone or Lost is the last of a generation. After Survey comes Surveyed or Refused.
struct Prepared {
  int master_port = -1;
  std::vector<std::pair<int, int>> task_ports;  // rank and port
  std::string store;                            // path of the socket
  std::string recorder;                         // path
};
// Nothing runs on this host, and nothing will before the next Prepare.
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
  int signal_sent = 0;                // last one dtrun sent before, to end it
  contract::UnderWay under_way = {};  // where it was when it ended by itself
};
// A rank whose process another program of the plan has started, which ends by itself.
struct RankEnded {
  int rank = 0;
  pid_t pid = 0;
  process::Ending ending;
};
// For the user: one line.
struct Said {
  std::string line;
};
// Whether ranks of this host have joined others (core/node/rank_contacts.h); told again when there is more.
struct Looked {
  bool joined = false;
  std::vector<std::string> frameworks;            // that a rank has loaded
  bool alone = false;                             // it was seen to work in a world of its own
  bool late = false;                              // it has had one for so long that it should have joined
  std::vector<verdict::Override> overrides = {};  // all of those ranks of which there is more to tell
};
// Every process of this generation on this host has ended, with what it left behind.
struct Gone {
  std::string calls;  // what the ranks called last, when any of them failed
};
// A signal that the user sent to dtrun on this host.
struct Asked {
  int signal = 0;
};
// What ranks of this host have for the MPI libraries of others (core/pmi/exchange.h).
struct Offered {
  pmi::Part part;
};
// A rank has come to MPI_Init, to MPI_Finalize, to MPI_Abort.
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
  bool broke = false;   // it did not: what it said to its server made no sense, as `message` says
};
// What served the MPI libraries of this host has ended, without being asked: "died of signal 11 (SIGSEGV)".
struct MpiServerLost {
  std::string how;
};
// The host cannot be reached any more, or is about to leave; its agent ends what runs there by itself.
struct Lost {
  std::string why;
  bool agent_died = false;  // else the network or the whole host is gone
  std::string next = {};    // what the user can do, where that is known; it does not travel
};

struct Inspected {
  std::uint32_t number = 0;               // of the request
  std::vector<verdict::RankDoing> ranks;  // that live
  std::uint64_t calls = 0;                // differs once any of them has called a collective that is recorded
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
  // Whoever commands the host next gets its events; empty: nobody. Not while a command is under way.
  void Attach(Sink sink) { sink_ = std::move(sink); }

 protected:
  void Emit(const Event& event) const {
    if (sink_) sink_(event);
  }

 private:
  Sink sink_;
};

}  // namespace dtrun::protocol

// The ranges of values in messages. Sizes that only cost memory are bounded by the decoder
// (core/protocol/messages.cc).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <set>

#include "core/base/visit.h"
#include "core/binding/topology.h"
#include "core/protocol/protocol.h"

namespace dtrun::protocol {
namespace {

using Phase = Conversation::Phase;

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kHostsAtMost = 1 << 16;
constexpr std::int64_t kMostPort = 65535;
constexpr std::int64_t kMostBitsPerS = 1'000'000'000'000'000;
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24);

// Records the first out-of-range value as text.
class Range {
 public:
  void Within(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    Fail(most < least ? fmt::format("{} {} where none is allowed", field, value)
                      : fmt::format("{} {} is not from {} to {}", field, value, least, most));
  }
  void Index(const char* field, std::int64_t value, std::size_t count) {
    Within(field, value, 0, static_cast<std::int64_t>(count) - 1);
  }
  void Time(const char* field, std::chrono::nanoseconds value) {
    Within(field, value.count(), 0, kLongest.count());
  }
  // A name that dtrun prints.
  void Name(const char* field, std::string_view value) {
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
        return Fail(fmt::format("{} has control characters", field));
    }
  }
  void Require(bool holds, std::string_view what) {
    if (!holds) Fail(std::string(what));
  }
  void Fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }
  std::string problem() && { return std::move(problem_); }

 private:
  std::string problem_;
};

// A rank of the agent's host.
void RankHere(Range& range, const Conversation& said, int rank) {
  if (!said.Lives(rank)) range.Fail(fmt::format("rank {} does not run on its host", rank));
}

void SignalNumber(Range& range, const char* field, int number) { range.Within(field, number, 0, SIGRTMAX); }

void Ranges(Range& range, const network::Candidate& one) {
  range.Name("an interface's name", one.interface);
  range.Within("a prefix of", one.address.prefix, 0, one.address.ip.is_v6() ? 128 : 32);
  range.Within("an MTU of", one.mtu, 0, std::numeric_limits<int>::max());
  range.Within("a speed in Mbit/s of", one.speed_mbps, 0, std::numeric_limits<int>::max());
  range.Name("an RDMA port's name", one.rdma);
}

void Ranges(Range& range, const process::Ending& ending) {
  range.Within("exit code", ending.code, 0, 255);
  SignalNumber(range, "signal", ending.signal);
  SignalNumber(range, "stopped by signal", ending.stopped_by);
}

// Windows sent by the agent are for ranks of its host; windows sent to it are for other ranks.
void Ranges(Range& range, const Conversation& said, const Called& called, bool from_agent) {
  for (const contract::Window& window : called.windows) {
    range.Require(contract::MakesSense(window, said.world_size),
                  fmt::format("calls on '{}' that no ranks of this world make", window.name));
    for (const auto& member : window.members) {
      if (said.Lives(member.world_rank) == from_agent) continue;
      range.Fail(fmt::format("calls of rank {}, which runs on {} host", member.world_rank,
                             from_agent ? "another" : "this"));
    }
  }
}

void Ranges(Range& range, const Conversation& said, const Differed& differed) {
  range.Index("rank", differed.difference.first, static_cast<std::size_t>(said.world_size));
  range.Index("rank", differed.difference.second, static_cast<std::size_t>(said.world_size));
}

// The agent must have opened this store client; it may be gone already.
void Known(Range& range, const Conversation& said, std::uint32_t client) {
  range.Within("client", client, 1, said.last_client);
}

void ProcessesRanges(Range& range, const Prepare& prepare) {
  std::int64_t next = 0;
  for (const plan::Process& process : prepare.processes) {
    range.Within("a process of rank", process.rank, next, prepare.world_size - 1);
    range.Within("a process with so many ranks:", process.rank_count, 1, prepare.world_size - process.rank);
    range.Within("local rank", process.local_rank, 0, prepare.world_size - 1);
    range.Require(!process.argv.empty() && !process.argv[0].empty(), "a process without a program");
    next = std::int64_t{process.rank} + process.rank_count;
  }
}

void MpiRanges(Range& range, const Prepare& prepare) {
  const pmi::Job& job = prepare.mpi;
  if (job.kind == pmi::Kind::kNone)
    return range.Require(job.hosts.empty(), "hosts for an MPI library that has none");
  range.Index("host", job.here, job.hosts.size());
  std::int64_t next = 0;
  for (const pmi::JobHost& host : job.hosts) {
    range.Within("a host's first rank", host.first_rank, next, next);
    range.Within("a host with so many ranks:", host.local_size, 1, prepare.world_size - next);
    next += host.local_size;
  }
  range.Within("hosts with so many ranks:", next, prepare.world_size, prepare.world_size);
  range.Require(!job.name.empty() && job.name.front() != '.' && job.name.find('/') == std::string::npos &&
                    job.name.find('\0') == std::string::npos,
                "an MPI job name that cannot be a file name");
}

// Ranges of commands.
template <class T>
void Ranges(Range&, const Conversation&, const T&) {}

// Rejects a request if its answer would be out of order.
void NothingDue(Range& range, const Conversation& said) {
  if (const char* const request = said.unanswered())
    range.Fail(fmt::format("{} is not answered yet", request));
}

void Ranges(Range& range, const Conversation& said, const Prepare& prepare) {
  NothingDue(range, said);
  range.Within("a world of so many ranks:", prepare.world_size, 1, kMostRanks);
  range.Within("port", prepare.master_port, -1, kMostPort);
  range.Time("nanoseconds of grace:", prepare.grace);
  ProcessesRanges(range, prepare);
  for (const int rank : prepare.task_ranks) range.Within("port for rank", rank, 0, prepare.world_size - 1);
  MpiRanges(range, prepare);
}
void Ranges(Range& range, const Conversation&, const Signal& signal) {
  range.Within("signal", signal.number, 1, SIGRTMAX);
}
void Ranges(Range& range, const Conversation&, const Stop& stop) {
  range.Within("signal", stop.signal, 1, SIGRTMAX);
}
void Ranges(Range& range, const Conversation& said, const Exchanged& exchanged) {
  range.Require(said.exchanges.contains(exchanged.exchange),
                fmt::format("nothing was offered for exchange '{}'", exchanged.exchange));
}
void Ranges(Range& range, const Conversation&, const Over& over) {
  range.Within("exit code", over.exit_code, 0, 255);
}
void Ranges(Range& range, const Conversation& said, const Survey& survey) {
  range.Within("host", survey.host, 0, kHostsAtMost - 1);
  NothingDue(range, said);
}
void Ranges(Range& range, const Conversation& said, const CheckConnectivity& check) {
  range.Require(said.candidates.has_value(), "its host was not surveyed");
  range.Require(said.connectivity_checks == 0, "the last one is not answered yet");
  range.Time("nanoseconds:", check.limit);
  std::set<int> peers;
  for (const network::Peer& peer : check.peers) {
    range.Within("host", peer.host, 0, kHostsAtMost - 1);
    range.Require(peer.host != said.host, "its host is to reach itself");
    range.Require(peers.insert(peer.host).second, fmt::format("host {} twice", peer.host));
    for (const network::Candidate& one : peer.candidates) Ranges(range, one);
  }
}
void Ranges(Range& range, const Conversation& said, const Measure& measure) {
  range.Require(said.candidates.has_value(), "its host was not surveyed");
  range.Require(said.measurements == 0, "the last one is not answered yet");
  range.Index("candidate", measure.from, said.candidates.value_or(0));
  range.Within("host", measure.peer, 0, kHostsAtMost - 1);
  Ranges(range, measure.to);
}
void Ranges(Range& range, const Conversation& said, const RunPreflight&) {
  range.Require(said.preflights == 0, "the last one is not answered yet");
}

// Ranges of events.
void Ranges(Range& range, const Conversation&, const Introduction& introduction) {
  range.Name("its host's name", introduction.host_name);
  if (const auto topology = binding::ParseTopology(introduction.processors); !topology)
    range.Fail(topology.error().text);
  for (const binding::Gpu& gpu : introduction.gpus.devices)
    range.Within("NUMA node", gpu.numa, -1, kMostRanks);
}
void Ranges(Range& range, const Conversation& said, const Prepared& prepared) {
  range.Within("port", prepared.master_port, said.wants_master_port ? 1 : -1,
               said.wants_master_port ? kMostPort : -1);
  range.Require(prepared.task_ports.size() == said.task_ranks.size(),
                fmt::format("{} ports for ranks, it was asked for {}", prepared.task_ports.size(),
                            said.task_ranks.size()));
  for (std::size_t i = 0; i < prepared.task_ports.size() && i < said.task_ranks.size(); ++i) {
    const auto& [rank, port] = prepared.task_ports[i];
    range.Within("port for rank", rank, said.task_ranks[i], said.task_ranks[i]);
    range.Within("port", port, 1, kMostPort);
  }
}
void Ranges(Range& range, const Conversation& said, const Refused&) {
  range.Require(said.phase != Phase::kIdle || said.surveys > 0, "no request is open");
}
void Ranges(Range& range, const Conversation& said, const Started& started) {
  const auto count = static_cast<std::int64_t>(said.processes.size());
  range.Within("so many processes:", static_cast<std::int64_t>(started.pids.size()), count, count);
  for (const pid_t pid : started.pids) range.Within("PID", pid, 1, std::numeric_limits<pid_t>::max());
}
void Ranges(Range& range, const Conversation& said, const Output& output) {
  RankHere(range, said, output.rank);
}
void Ranges(Range& range, const Conversation& said, const Ended& ended) {
  const Conversation::RankProcess* process = nullptr;
  for (const auto& one : said.processes) {
    if (one.rank == ended.rank) process = &one;
  }
  range.Require(process != nullptr, fmt::format("no process of its host begins with rank {}", ended.rank));
  range.Require(process == nullptr || !process->ended, fmt::format("rank {} has ended before", ended.rank));
  Ranges(range, ended.ending);
  SignalNumber(range, "sent signal", ended.signal_sent);
}
void Ranges(Range& range, const Conversation& said, const RankEnded& ended) {
  bool own = false;
  for (const auto& one : said.processes) {
    own = own || (one.own_outputs && ended.rank >= one.rank && ended.rank - one.rank < one.count);
  }
  range.Require(own, fmt::format("rank {} is not a process of its own on this host", ended.rank));
  range.Within("PID", ended.pid, 0, std::numeric_limits<pid_t>::max());
  Ranges(range, ended.ending);
}
void Ranges(Range& range, const Conversation& said, const std::vector<verdict::Override>& overrides) {
  for (const verdict::Override& one : overrides) {
    RankHere(range, said, one.rank);
    for (const std::string& text : {one.name, one.given, one.now}) range.Name("a variable", text);
  }
}
void Ranges(Range& range, const Conversation& said, const Looked& looked) {
  Ranges(range, said, looked.overrides);
}
void Ranges(Range& range, const Conversation& said, const Inspected& inspected) {
  std::set<int> seen;
  for (const verdict::RankDoing& doing : inspected.ranks) {
    const bool here = std::ranges::any_of(said.processes, [&](const Conversation::RankProcess& one) {
      return doing.rank >= one.rank && doing.rank - one.rank < one.count;
    });
    range.Require(here && seen.insert(doing.rank).second,
                  fmt::format("rank {} does not run on its host, or is named twice", doing.rank));
    range.Require(doing.processor_ms >= 0 && doing.bytes >= 0, "times or sizes below zero");
    range.Within("rank that has a lock", doing.waits_for, -1, said.world_size - 1);
    Ranges(range, said, doing.overrides);
  }
}
void Ranges(Range& range, const Conversation& said, const Gone&) {
  range.Require(said.phase == Phase::kRunning || said.told_to_end, "it was not told to end");
}
void Ranges(Range& range, const Conversation&, const Asked& asked) {
  range.Within("signal", asked.signal, 1, SIGRTMAX);
}
void Ranges(Range& range, const Conversation& said, const Offered& offered) {
  bool here = false;
  int last = -1;
  for (const int host : offered.part.hosts) {
    range.Within("after host so much the host", host, last + 1, said.hosts - 1);
    here = here || host == said.here;
    last = host;
  }
  range.Require(here, "a part of an exchange that it does not take part in");
  range.Require(!said.exchanges.contains(offered.part.exchange),
                fmt::format("a second part of exchange '{}'", offered.part.exchange));
}
void Ranges(Range& range, const Conversation& said, const MpiStarted& m) { RankHere(range, said, m.rank); }
void Ranges(Range& range, const Conversation& said, const MpiFinished& m) { RankHere(range, said, m.rank); }
void Ranges(Range& range, const Conversation& said, const MpiAborted& m) { RankHere(range, said, m.rank); }
void Ranges(Range& range, const Conversation& said, const MpiServerLost&) {
  range.Require(said.hosts > 0, "it serves no MPI library");
}
void Ranges(Range& range, const Conversation& said, const ClientOpened& opened) {
  range.Within("client", opened.client, std::int64_t{said.last_client} + 1,
               std::numeric_limits<std::uint32_t>::max());
}
void Ranges(Range& range, const Conversation& said, const ClientData& m) { Known(range, said, m.client); }
void Ranges(Range& range, const Conversation& said, const ClientClosed& m) { Known(range, said, m.client); }
void Ranges(Range& range, const Conversation&, const Surveyed& surveyed) {
  for (const network::Candidate& one : surveyed.offer.candidates) Ranges(range, one);
  for (const network::LeftOut& one : surveyed.offer.left_out) {
    range.Name("an interface's name", one.interface);
    range.Name("an address", one.address);
  }
}
void Ranges(Range& range, const Conversation& said, const ConnectivityChecked& connected) {
  range.Within("so many tries:", static_cast<std::int64_t>(connected.attempts.size()), 0,
               static_cast<std::int64_t>(said.candidates_of.size() * network::kMostTriesPerPeer));
  for (const network::Attempt& attempt : connected.attempts) {
    const auto peer = said.candidates_of.find(attempt.peer);
    if (peer == said.candidates_of.end())
      return range.Fail(fmt::format("a try of host {}, which it was not to try", attempt.peer));
    range.Index("its candidate", attempt.from, said.candidates.value_or(0));
    range.Index("the peer's candidate", attempt.to, peer->second);
    range.Time("nanoseconds:", attempt.round_trip);
    range.Name("an interface's name", attempt.leaves_by);
  }
}
void Ranges(Range& range, const Conversation&, const Measured& measured) {
  const double rate = measured.throughput.bits_per_s;
  range.Require(std::isfinite(rate) && rate >= 0 && rate <= static_cast<double>(kMostBitsPerS),
                fmt::format("a rate of {} bit/s", rate));
  range.Time("nanoseconds:", measured.throughput.round_trip);
}

template <class Message>
std::string FirstWrong(const Conversation& said, const Message& message, bool from_agent) {
  Range range;
  Visit(
      [&]<class T>(const T& given) {
        if constexpr (std::is_same_v<T, Called>) {
          Ranges(range, said, given, from_agent);
        } else {
          Ranges(range, said, given);
        }
      },
      message);
  return std::move(range).problem();
}

}  // namespace

std::string OutOfRange(const Conversation& said, const ToAgent& message) {
  return FirstWrong(said, message, false);
}
std::string OutOfRange(const Conversation& said, const ToRoot& message) {
  return FirstWrong(said, message, true);
}

}  // namespace dtrun::protocol

#include "core/protocol/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/visit.h"
#include "core/binding/topology.h"
#include "core/contract/environment.h"
#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

const char* PhaseText(Phase phase) {
  constexpr const char* kTexts[] = {"before it said what its host is", "while no ranks were asked for",
                                    "while it prepared its host",      "while its host was prepared",
                                    "while it started its ranks",      "while its ranks ran"};
  return kTexts[static_cast<std::size_t>(phase)];
}

int& Open(Conversation& said, Request request) { return said.open[static_cast<std::size_t>(request)]; }

// The state changes of a message. Most change nothing.
template <class T>
void Apply(Conversation&, const T&) {}

void Apply(Conversation& said, const Prepare& prepare) {
  said.phase = Phase::kPreparing;
  said.told_to_end = false;
  said.world_size = prepare.world_size;
  said.wants_master_port = prepare.master_port >= 0;
  said.task_ranks = prepare.task_ranks;
  said.processes.clear();
  for (const plan::Process& process : prepare.processes) {
    said.processes.push_back(
        {process.rank, process.rank_count, process.env.contains(contract::kRankOutputs), false});
  }
  said.hosts = static_cast<int>(prepare.mpi.hosts.size());
  said.here = prepare.mpi.here;
  said.exchanges.clear();
  said.candidates.reset();
  said.candidates_of.clear();
}
void Apply(Conversation& said, const Start&) { said.phase = Phase::kStarting; }
void Apply(Conversation& said, const Stop&) { said.told_to_end = true; }
void Apply(Conversation& said, const Kill&) { said.told_to_end = true; }
void Apply(Conversation& said, const Over&) { said.told_to_end = true; }
void Apply(Conversation& said, const Exchanged& exchanged) { said.exchanges.erase(exchanged.exchange); }
void Apply(Conversation& said, const Survey& survey) { said.host = survey.host; }
void Apply(Conversation& said, const CheckConnectivity& check) {
  said.candidates_of.clear();
  for (const network::Peer& peer : check.peers) said.candidates_of[peer.host] = peer.candidates.size();
}

void Apply(Conversation& said, const Introduction&) { said.phase = Phase::kIdle; }
void Apply(Conversation& said, const Prepared&) { said.phase = Phase::kPrepared; }
void Apply(Conversation& said, const Refused&) {
  int& surveys = Open(said, Request::kSurvey);
  if (said.phase == Phase::kIdle && surveys > 0) --surveys;
  said.phase = Phase::kIdle;
}
void Apply(Conversation& said, const Started&) { said.phase = Phase::kRunning; }
void Apply(Conversation& said, const Ended& ended) {
  const auto process = std::ranges::find(said.processes, ended.rank, &Conversation::RankProcess::rank);
  if (process != said.processes.end()) process->ended = true;
}
void Apply(Conversation& said, const Gone&) { said.phase = Phase::kIdle; }
void Apply(Conversation& said, const Offered& offered) { said.exchanges.insert(offered.part.exchange); }
void Apply(Conversation& said, const ClientOpened& opened) { said.last_client = opened.client; }
void Apply(Conversation& said, const Surveyed& surveyed) {
  said.candidates = surveyed.offer.candidates.size();
}

// Records the first value that does not fit, as text.
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

// What depends on earlier messages; the other limits stand beside the fields. Of most messages the rank must
// live on the agent's host; the agent must have opened a store client, which may be gone already.
template <class T>
void Ranges(Range& range, const Conversation& said, const T& message) {
  if constexpr (requires { message.rank; }) RankHere(range, said, message.rank);
  if constexpr (requires { message.client; }) range.Within("client", message.client, 1, said.last_client);
}

// Rejects a request if its answer would be out of order.
void NothingDue(Range& range, const Conversation& said) {
  if (const char* const request = said.unanswered())
    range.Fail(fmt::format("{} is not answered yet", request));
}

void Ranges(Range& range, const Conversation& said, const Prepare& prepare) {
  NothingDue(range, said);
  ProcessesRanges(range, prepare);
  MpiRanges(range, prepare);
}
void Ranges(Range& range, const Conversation& said, const Exchanged& exchanged) {
  range.Require(said.exchanges.contains(exchanged.exchange),
                fmt::format("nothing was offered for exchange '{}'", exchanged.exchange));
}
void Ranges(Range& range, const Conversation& said, const Survey&) { NothingDue(range, said); }
void Ranges(Range& range, const Conversation& said, const CheckConnectivity& check) {
  range.Require(said.candidates.has_value(), "its host was not surveyed");
  std::set<int> peers;
  for (const network::Peer& peer : check.peers) {
    range.Require(peer.host != said.host, "its host is to reach itself");
    range.Require(peers.insert(peer.host).second, fmt::format("host {} twice", peer.host));
  }
}
void Ranges(Range& range, const Conversation& said, const Measure& measure) {
  range.Require(said.candidates.has_value(), "its host was not surveyed");
  range.Index("candidate", measure.from, said.candidates.value_or(0));
}
void Ranges(Range& range, const Conversation&, const Introduction& introduction) {
  if (const auto topology = binding::ParseTopology(introduction.processors); !topology)
    range.Fail(topology.error().text);
}
void Ranges(Range& range, const Conversation& said, const Prepared& prepared) {
  range.Within("port", prepared.master_port, said.wants_master_port ? 1 : -1,
               said.wants_master_port ? wire::kAnyPort.most : -1);
  range.Require(prepared.task_ports.size() == said.task_ranks.size(),
                fmt::format("{} ports for ranks, it was asked for {}", prepared.task_ports.size(),
                            said.task_ranks.size()));
  for (std::size_t i = 0; i < prepared.task_ports.size() && i < said.task_ranks.size(); ++i) {
    const auto& [rank, port] = prepared.task_ports[i];
    range.Within("port for rank", rank, said.task_ranks[i], said.task_ranks[i]);
    range.Within("port", port, 1, wire::kAnyPort.most);
  }
}
void Ranges(Range& range, const Conversation& said, const Refused&) {
  range.Require(said.phase != Phase::kIdle || said.open[static_cast<std::size_t>(Request::kSurvey)] > 0,
                "no request is open");
}
void Ranges(Range& range, const Conversation& said, const Started& started) {
  const auto count = static_cast<std::int64_t>(said.processes.size());
  range.Within("so many processes:", static_cast<std::int64_t>(started.pids.size()), count, count);
}
void Ranges(Range& range, const Conversation& said, const Ended& ended) {
  const auto process = std::ranges::find(said.processes, ended.rank, &Conversation::RankProcess::rank);
  if (process == said.processes.end())
    return range.Fail(fmt::format("no process of its host begins with rank {}", ended.rank));
  range.Require(!process->ended, fmt::format("rank {} has ended before", ended.rank));
}
void Ranges(Range& range, const Conversation& said, const RankEnded& ended) {
  const bool own = std::ranges::any_of(
      said.processes, [&](const auto& one) { return one.own_outputs && one.Has(ended.rank); });
  range.Require(own, fmt::format("rank {} is not a process of its own on this host", ended.rank));
}
void Ranges(Range& range, const Conversation& said, const std::vector<verdict::Override>& overrides) {
  for (const verdict::Override& one : overrides) RankHere(range, said, one.rank);
}
void Ranges(Range& range, const Conversation& said, const RendezvousSeen& looked) {
  Ranges(range, said, looked.overrides);
}
void Ranges(Range& range, const Conversation& said, const Inspected& inspected) {
  std::set<int> seen;
  for (const verdict::RankDoing& doing : inspected.ranks) {
    range.Require(said.Lives(doing.rank) && seen.insert(doing.rank).second,
                  fmt::format("rank {} does not run on its host, or is named twice", doing.rank));
    range.Within("rank that has a lock", doing.waits_for, -1, said.world_size - 1);
    Ranges(range, said, doing.overrides);
  }
}
void Ranges(Range& range, const Conversation& said, const Gone&) {
  range.Require(said.phase == Phase::kRunning || said.told_to_end, "it was not told to end");
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
void Ranges(Range& range, const Conversation& said, const MpiServerLost&) {
  range.Require(said.hosts > 0, "it serves no MPI library");
}
void Ranges(Range& range, const Conversation& said, const ClientOpened& opened) {
  range.Within("client", opened.client, std::int64_t{said.last_client} + 1,
               std::numeric_limits<std::uint32_t>::max());
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
  }
}

// Describes the first value that does not fit the conversation; empty: none.
template <class Message>
std::string Unfit(const Conversation& said, const Message& message) {
  Range range;
  Visit(
      [&]<class T>(const T& given) {
        if (T::kRule.asks != Request::kNone && said.open[static_cast<std::size_t>(T::kRule.asks)] > 0)
          range.Fail("the last one is not answered yet");
        if constexpr (std::is_same_v<T, Called>) {
          Ranges(range, said, given, std::is_same_v<Message, ToRoot>);
        } else {
          Ranges(range, said, given);
        }
      },
      message);
  return std::move(range).problem();
}

template <class Message>
Rule RuleOf(const Message& message) {
  return Visit([]<class T>(const T&) { return T::kRule; }, message);
}

template <class Message>
void NoteAny(Conversation& said, const Message& message) {
  const Rule rule = RuleOf(message);
  if (rule.asks != Request::kNone) ++Open(said, rule.asks);
  if (int& open = Open(said, rule.answers); open > 0) --open;
  Visit([&](const auto& given) { Apply(said, given); }, message);
}

template <class Message>
Result<bool> CheckAny(Conversation& said, const Message& message) {
  const Rule rule = RuleOf(message);
  const auto broken = [&](std::string_view what) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "it broke the control protocol: it sent {} {}: {}; does it run the same build of dtrun?",
                     rule.name, PhaseText(said.phase), what);
  };
  if ((rule.phases & In({said.phase})) == 0) {
    if (rule.may_be_late && said.phase == Phase::kIdle) return false;
    return broken("nothing of the kind is due");
  }
  if (rule.answers != Request::kNone && Open(said, rule.answers) == 0) return broken("it was not requested");
  if (const std::string wrong = Unfit(said, message); !wrong.empty()) return broken(wrong);
  NoteAny(said, message);
  return true;
}

constexpr std::string_view kWhat = "message between root and agent";

}  // namespace

std::string Encode(const ToAgent& message) { return wire::Encode(message); }
std::string Encode(const ToRoot& message) { return wire::Encode(message); }

Result<ToAgent> DecodeToAgent(std::string_view bytes) { return wire::Decode<ToAgent>(bytes, kWhat); }
Result<ToRoot> DecodeToRoot(std::string_view bytes) { return wire::Decode<ToRoot>(bytes, kWhat); }

bool Conversation::Lives(int rank) const {
  return std::ranges::any_of(processes, [rank](const RankProcess& one) { return one.Has(rank); });
}

const char* Conversation::unanswered() const {
  if (phase == Phase::kPreparing) return Prepare::kRule.name;
  if (phase == Phase::kStarting) return Start::kRule.name;
  for (const Rule& rule : {Survey::kRule, CheckConnectivity::kRule, Measure::kRule, RunPreflight::kRule}) {
    if (open[static_cast<std::size_t>(rule.asks)] > 0) return rule.name;
  }
  return nullptr;
}

void Protocol::Note(const ToAgent& message) { NoteAny(said_, message); }
void Protocol::Note(const ToRoot& message) { NoteAny(said_, message); }

Result<bool> Protocol::Check(const ToAgent& message) { return CheckAny(said_, message); }
Result<bool> Protocol::Check(const ToRoot& message) { return CheckAny(said_, message); }

}  // namespace dtrun::protocol

#include "core/protocol/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "core/base/visit.h"
#include "core/contract/environment.h"

namespace dtrun::protocol {
namespace {

using Phase = Conversation::Phase;

constexpr unsigned In(std::initializer_list<Phase> phases) {
  unsigned set = 0;
  for (const Phase phase : phases) set |= 1u << static_cast<unsigned>(phase);
  return set;
}

constexpr unsigned kAnyPhase = In(
    {Phase::kJoining, Phase::kIdle, Phase::kPreparing, Phase::kPrepared, Phase::kStarting, Phase::kRunning});
constexpr unsigned kJoined = kAnyPhase & ~In({Phase::kJoining});
constexpr unsigned kWithRanks = In({Phase::kStarting, Phase::kRunning});
constexpr unsigned kServed = kWithRanks | In({Phase::kPreparing, Phase::kPrepared});

constexpr bool kMayBeLate = true;

// When a message is allowed. `request`: the message that it answers. Late: it concerns ranks, and may cross
// the message that they are gone.
struct Rule {
  const char* name = nullptr;
  unsigned phases = 0;
  int Conversation::*request = nullptr;
  bool may_be_late = false;
};

template <class T>
constexpr Rule kRule;

// Messages to the agent.
template <>
constexpr Rule kRule<Prepare>{"Prepare", In({Phase::kIdle})};
template <>
constexpr Rule kRule<Start>{"Start", In({Phase::kPrepared})};
template <>
constexpr Rule kRule<Signal>{"Signal", kJoined};
template <>
constexpr Rule kRule<Stop>{"Stop", kJoined};
template <>
constexpr Rule kRule<Kill>{"Kill", kJoined};
template <>
constexpr Rule kRule<Exchanged>{"Exchanged", kJoined};
template <>
constexpr Rule kRule<Inspect>{"Inspect", kWithRanks, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Over>{"Over", kAnyPhase};
template <>
constexpr Rule kRule<Survey>{"Survey", In({Phase::kIdle})};
template <>
constexpr Rule kRule<CheckConnectivity>{"CheckConnectivity", In({Phase::kIdle})};
template <>
constexpr Rule kRule<Measure>{"Measure", In({Phase::kIdle})};
template <>
constexpr Rule kRule<RunPreflight>{"RunPreflight", In({Phase::kIdle})};
// Messages to the root.
template <>
constexpr Rule kRule<Introduction>{"Introduction", In({Phase::kJoining})};
template <>
constexpr Rule kRule<Prepared>{"Prepared", In({Phase::kPreparing})};
template <>
constexpr Rule kRule<Refused>{"Refused", In({Phase::kIdle, Phase::kPreparing, Phase::kStarting})};
template <>
constexpr Rule kRule<Started>{"Started", In({Phase::kStarting})};
template <>
constexpr Rule kRule<Output>{"Output", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Ended>{"Ended", kWithRanks};
template <>
constexpr Rule kRule<RankEnded>{"RankEnded", kWithRanks, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Said>{"Said", kJoined};
template <>
constexpr Rule kRule<Logged>{"Logged", kJoined};
template <>
constexpr Rule kRule<Looked>{"Looked", kWithRanks, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Inspected>{"Inspected", kWithRanks, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Gone>{"Gone", In({Phase::kPrepared, Phase::kRunning})};
template <>
constexpr Rule kRule<Asked>{"Asked", kJoined};
template <>
constexpr Rule kRule<Offered>{"Offered", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<MpiStarted>{"MpiStarted", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<MpiFinished>{"MpiFinished", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<MpiAborted>{"MpiAborted", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<MpiServerLost>{"MpiServerLost", kServed, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<ClientOpened>{"ClientOpened", kJoined};
template <>
constexpr Rule kRule<Surveyed>{"Surveyed", In({Phase::kIdle}), &Conversation::surveys};
template <>
constexpr Rule kRule<ConnectivityChecked>{"ConnectivityChecked", In({Phase::kIdle}),
                                          &Conversation::connectivity_checks};
template <>
constexpr Rule kRule<Measured>{"Measured", In({Phase::kIdle}), &Conversation::measurements};
template <>
constexpr Rule kRule<PreflightAnswered>{"PreflightAnswered", In({Phase::kIdle}), &Conversation::preflights};
template <>
constexpr Rule kRule<Lost>{"Lost", kAnyPhase};
// Messages in both directions.
template <>
constexpr Rule kRule<ClientData>{"ClientData", kJoined};
template <>
constexpr Rule kRule<ClientClosed>{"ClientClosed", kJoined};
template <>
constexpr Rule kRule<Called>{"Called", kWithRanks, nullptr, kMayBeLate};
template <>
constexpr Rule kRule<Differed>{"Differed", kWithRanks, nullptr, kMayBeLate};

const char* PhaseText(Phase phase) {
  switch (phase) {
    case Phase::kJoining: return "before it said what its host is";
    case Phase::kIdle: return "while no ranks were asked for";
    case Phase::kPreparing: return "while it prepared its host";
    case Phase::kPrepared: return "while its host was prepared";
    case Phase::kStarting: return "while it started its ranks";
    case Phase::kRunning: return "while its ranks ran";
  }
  return "";
}

void Answer(int Conversation::*request, Conversation& said) {
  if (said.*request > 0) --(said.*request);
}

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
void Apply(Conversation& said, const Survey& survey) {
  ++said.surveys;
  said.host = survey.host;
}
void Apply(Conversation& said, const CheckConnectivity& check) {
  ++said.connectivity_checks;
  said.candidates_of.clear();
  for (const network::Peer& peer : check.peers) said.candidates_of[peer.host] = peer.candidates.size();
}
void Apply(Conversation& said, const Measure&) { ++said.measurements; }
void Apply(Conversation& said, const RunPreflight&) { ++said.preflights; }

void Apply(Conversation& said, const Introduction&) { said.phase = Phase::kIdle; }
void Apply(Conversation& said, const Prepared&) { said.phase = Phase::kPrepared; }
void Apply(Conversation& said, const Refused&) {
  if (said.phase == Phase::kIdle) return Answer(&Conversation::surveys, said);
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
  Answer(&Conversation::surveys, said);
  said.candidates = surveyed.offer.candidates.size();
}
void Apply(Conversation& said, const ConnectivityChecked&) {
  Answer(&Conversation::connectivity_checks, said);
}
void Apply(Conversation& said, const Measured&) { Answer(&Conversation::measurements, said); }
void Apply(Conversation& said, const PreflightAnswered&) { Answer(&Conversation::preflights, said); }

template <class Message>
void NoteAny(Conversation& said, const Message& message) {
  Visit([&](const auto& given) { Apply(said, given); }, message);
}

template <class Message>
Result<bool> CheckAny(Conversation& said, const Message& message) {
  const Rule& rule = Visit(
      []<class T>(const T&) -> const Rule& {
        static_assert(kRule<T>.name != nullptr, "every message has its phases");
        return kRule<T>;
      },
      message);
  const auto broken = [&](std::string_view what) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("it broke the control protocol: it sent {} {}: {}; does it run the same build of dtrun?",
                    rule.name, PhaseText(said.phase), what)};
  };
  if ((rule.phases & In({said.phase})) == 0) {
    if (rule.may_be_late && said.phase == Phase::kIdle) return false;
    return broken("nothing of the kind is due");
  }
  if (rule.request != nullptr && said.*rule.request == 0) return broken("it was not requested");
  if (const std::string wrong = OutOfRange(said, message); !wrong.empty()) return broken(wrong);
  NoteAny(said, message);
  return true;
}

}  // namespace

bool Conversation::Lives(int rank) const {
  return std::ranges::any_of(
      processes, [rank](const RankProcess& one) { return rank >= one.rank && rank - one.rank < one.count; });
}

const char* Conversation::unanswered() const {
  if (phase == Phase::kPreparing) return kRule<Prepare>.name;
  if (phase == Phase::kStarting) return kRule<Start>.name;
  if (surveys > 0) return kRule<Survey>.name;
  if (connectivity_checks > 0) return kRule<CheckConnectivity>.name;
  if (measurements > 0) return kRule<Measure>.name;
  return preflights > 0 ? kRule<RunPreflight>.name : nullptr;
}

void Protocol::Note(const ToAgent& message) { NoteAny(said_, message); }
void Protocol::Note(const ToRoot& message) { NoteAny(said_, message); }

Result<bool> Protocol::Check(const ToAgent& message) { return CheckAny(said_, message); }
Result<bool> Protocol::Check(const ToRoot& message) { return CheckAny(said_, message); }

}  // namespace dtrun::protocol

#include "core/protocol/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/visit.h"
#include "core/contract/environment.h"

namespace dtrun::protocol {
namespace {

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
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("it broke the control protocol: it sent {} {}: {}; does it run the same build of dtrun?",
                    rule.name, PhaseText(said.phase), what)};
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

}  // namespace

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

#include "core/agent/gathering.h"

#include <algorithm>
#include <utility>

#include "core/agent/examiner.h"
#include "core/agent/network.h"

namespace dtrun::agent {

Gathering::Gathering(boost::asio::io_context& loop, UserSignals& signals, const RunRequest& request,
                     Host& here, Muster* muster)
    : loop_(loop), signals_(signals), request_(request), here_(here), muster_(muster), plan_(request.plan) {}

Result<bool> Gathering::Gather() {
  const bool first = hosts_.empty();
  if (muster_ == nullptr) {
    if (!first) return false;
    hosts_ = {&here_};
    remote_ = {nullptr};
    if (plan_.network_rules.empty()) return true;
    if (Status chosen = CheckRuleHere(plan_.network_rules[0]); !chosen) return chosen.error();
    return true;
  }
  Result<std::vector<Muster::Present>> present = muster_->Gather();
  interrupted_ = muster_->interrupted();
  if (!present) return present.error();
  std::vector<plan::HostOffer> offers;
  hosts_.clear();
  remote_.clear();
  for (const Muster::Present& one : *present) {
    offers.push_back(one.offer);
    remote_.push_back(one.host);
    hosts_.push_back(one.host == nullptr ? &here_ : one.host);
  }
  if (!first && offers == offers_) return false;
  Result<plan::Plan> draft = request_.replan(offers, {}, nullptr);
  if (!draft) return draft.error();
  plan_ = *std::move(draft);
  // The network first: one that loses large packets is named by its proof, and would swallow a question.
  const Result<std::optional<net::Decision>> network = FindNetwork(*present);
  if (!network) return network.error();
  const Result<std::vector<std::string>> answers = AskBackends(offers);
  if (!answers) return answers.error();
  Result<plan::Plan> plan = request_.replan(offers, *answers, *network ? &**network : nullptr);
  if (!plan) return plan.error();
  plan_ = *std::move(plan);
  ApplyRungs();
  offers_ = std::move(offers);
  return true;
}

// What each host says of the backends that the job may use; empty when there is nothing to ask.
Result<std::vector<std::string>> Gathering::AskBackends(const std::vector<plan::HostOffer>& offers) {
  Result<std::vector<std::string>> questions = request_.questions(offers);
  if (!questions || questions->empty()) return questions;
  Examiner examiner(loop_, signals_);
  Result<std::vector<std::string>> told = examiner.Run(*questions, remote_);
  interrupted_ = examiner.interrupted();
  return told;
}

// The network that joins the hosts. One host, or several that are one machine, need none; what the user has
// asked for is checked all the same.
Result<std::optional<net::Decision>> Gathering::FindNetwork(const std::vector<Muster::Present>& present) {
  if (plan_.network_rules.empty()) return {std::nullopt};
  if (hosts_.size() == 1) {
    if (Status chosen = CheckRuleHere(plan_.network_rules[0]); !chosen) return chosen.error();
    return {std::nullopt};
  }
  const auto is_first = [&](const Muster::Present& one) { return one.machine == present[0].machine; };
  if (std::ranges::all_of(present, is_first)) return {std::nullopt};
  std::vector<NetworkSearch::Member> members;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    members.push_back({plan_.hosts[i].name, present[i].machine, hosts_[i]});
  }
  NetworkSearch search(loop_, signals_, std::move(members));
  Result<net::Decision> decision = search.Run(plan_.network_rules);
  interrupted_ = search.interrupted();
  if (!decision) return decision.error();
  return {*std::move(decision)};
}

std::optional<std::string> Gathering::TakeRung(const Facts& facts,
                                               const std::vector<std::string>& environment) {
  const auto inherited = [&](std::string_view variable) {
    return std::ranges::any_of(
        environment, [&](const std::string& entry) { return entry.substr(0, entry.find('=')) == variable; });
  };
  const auto rung = NextRung(facts, plan_, inherited);
  if (!rung) return std::nullopt;
  rungs_.push_back(*rung);
  ApplyRungs();
  return rung->line;
}

void Gathering::ApplyRungs() {
  for (const Rung& rung : rungs_) {
    for (plan::Process& process : plan_.processes) {
      for (const auto& [name, value] : rung.variables) process.env[name] = value;
    }
    if (std::ranges::find(plan_.notes, rung.line) == plan_.notes.end()) plan_.notes.push_back(rung.line);
  }
}

bool Gathering::LostAHost() const {
  return std::ranges::any_of(remote_, [](const RemoteHost* host) { return host && host->lost(); });
}

}  // namespace dtrun::agent

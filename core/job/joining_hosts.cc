#include "core/job/joining_hosts.h"

#include <fmt/format.h>

#include "core/failures/table.h"
#include "core/membership/host_preflight.h"
#include "core/verdict/cause.h"

namespace dtrun::job {
namespace {

bool IsDecided(const plan::Plan& plan, const std::function<bool(std::string_view)>& inherited,
               const std::string& variable) {
  return inherited(variable) || std::ranges::any_of(plan.processes, [&](const plan::Process& process) {
           return process.env.contains(variable);
         });
}

}  // namespace

std::optional<Fallback> NextFallback(const verdict::Facts& facts, const plan::Plan& plan,
                                     const std::function<bool(std::string_view)>& inherited) {
  const verdict::Cause cause = verdict::FindCause(facts);
  if (facts.interrupt != 0 || facts.guard_died || !facts.losses.empty()) return {};
  if (cause.kind != verdict::Cause::Kind::kRank) return {};
  const verdict::RankFacts& rank = facts.ranks[cause.index];
  if (!rank.known || !rank.known->recent) return {};
  const std::vector<std::string>& against = rank.known->finding.failure->against;
  const auto known = failures::Known();
  for (const failures::FallbackLevel& level : known->fallbacks()) {
    const auto& [first, value] = level.variables.front();
    if (std::ranges::find(against, level.path) == against.end() || IsDecided(plan, inherited, first))
      continue;
    Fallback fallback;
    for (const auto& variable : level.variables) {
      // dtrun's own variables record its findings, which no longer hold.
      if (variable.first.starts_with("DTRUN_") || !IsDecided(plan, inherited, variable.first))
        fallback.variables.push_back(variable);
    }
    fallback.line = fmt::format("rank {}: {}; restarting all ranks {} ({}={})", rank.rank,
                                rank.known->finding.what, level.said, first, value);
    return fallback;
  }
  return {};
}

JoiningHosts::JoiningHosts(asio::io_context& loop, process::UserSignals& signals, const RunRequest& request,
                           protocol::Host& here, membership::Membership* membership)
    : loop_(loop),
      signals_(signals),
      request_(request),
      here_(here),
      membership_(membership),
      plan_(request.plan) {}

Result<bool> JoiningHosts::Gather() {
  const bool first = hosts_.empty();
  if (membership_ == nullptr) {
    if (!first) return false;
    hosts_ = {&here_};
    remote_ = {nullptr};
    if (plan_.network_rules.empty()) return true;
    if (Status chosen = membership::CheckNamesHere(plan_.network_rules[0]); !chosen) return chosen.error();
    return true;
  }
  remote_.clear();  // Gather releases hosts that were lost
  Result<std::vector<membership::Membership::Present>> present = membership_->Gather();
  interrupted_ = membership_->interrupted();
  if (!present) return present.error();
  std::vector<plan::HostOffer> offers;
  hosts_.clear();
  machines_.clear();
  for (const membership::Membership::Present& one : *present) {
    offers.push_back(one.offer);
    remote_.push_back(one.host);
    machines_.push_back(one.machine);
    hosts_.push_back(one.host == nullptr ? &here_ : one.host);
  }
  if (!first && offers == offers_) return false;
  Result<plan::Plan> draft = request_.planner->PlanFor(offers, {}, nullptr);
  if (!draft) return draft.error();
  plan_ = *std::move(draft);
  // Search for the network first: one that loses large packets would swallow a request, but its connectivity
  // check identifies it.
  const Result<std::optional<network::Decision>> network = FindNetwork();
  if (!network) return network.error();
  const Result<std::vector<preflight::Answer>> answers = AskBackends(offers);
  if (!answers) return answers.error();
  Result<plan::Plan> plan = request_.planner->PlanFor(offers, *answers, *network ? &**network : nullptr);
  if (!plan) return plan.error();
  plan_ = *std::move(plan);
  ApplyFallbacks();
  offers_ = std::move(offers);
  return true;
}

// Each host's answer about the backends that the job may use; empty if there is nothing to ask.
Result<std::vector<preflight::Answer>> JoiningHosts::AskBackends(const std::vector<plan::HostOffer>& offers) {
  const Result<std::vector<preflight::Request>> requests = request_.planner->PreflightRequests(offers);
  if (!requests) return requests.error();
  if (requests->empty()) return std::vector<preflight::Answer>();
  membership::HostPreflight preflight(loop_, signals_);
  Result<std::vector<preflight::Answer>> told = preflight.Run(*requests, remote_);
  interrupted_ = preflight.interrupted();
  return told;
}

// The network between the hosts. One host, or several on one machine, need none, but the user's network
// options are still checked.
Result<std::optional<network::Decision>> JoiningHosts::FindNetwork() {
  if (plan_.network_rules.empty()) return {std::nullopt};
  if (hosts_.size() == 1) {
    if (Status chosen = membership::CheckNamesHere(plan_.network_rules[0]); !chosen) return chosen.error();
    return {std::nullopt};
  }
  if (OnOneMachine()) return {std::nullopt};
  membership::NetworkSearch search(loop_, signals_, Members());
  Result<network::Decision> decision = search.Run(plan_.network_rules);
  interrupted_ = search.interrupted();
  if (!decision) return decision.error();
  return {*std::move(decision)};
}

std::vector<membership::NetworkSearch::Member> JoiningHosts::Members() const {
  std::vector<membership::NetworkSearch::Member> members;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    members.push_back({plan_.hosts[i].name, machines_[i], hosts_[i]});
  return members;
}

std::optional<std::string> JoiningHosts::Apart(const verdict::Facts& facts) {
  const verdict::Cause cause = verdict::FindCause(facts);
  if (cause.kind != verdict::Cause::Kind::kRank || cause.exit_class != verdict::ExitClass::kNetwork)
    return {};
  if (membership_ == nullptr || hosts_.size() < 2 || plan_.network_rules.empty() || LostAHost() ||
      OnOneMachine())
    return {};
  membership::NetworkSearch search(loop_, signals_, Members());
  const Result<network::Evidence> evidence = search.CheckAgain(plan_.network_rules);
  interrupted_ = search.interrupted();
  std::string text;
  for (const auto& [one, other] : evidence ? evidence->Apart() : std::vector<std::pair<int, int>>()) {
    text += fmt::format("{}{} and {}", text.empty() ? "hosts " : ", ",
                        plan_.hosts[static_cast<std::size_t>(one)].name,
                        plan_.hosts[static_cast<std::size_t>(other)].name);
  }
  return text.empty() ? text : text + " cannot reach each other";
}

std::optional<std::string> JoiningHosts::TakeFallback(const verdict::Facts& facts,
                                                      const std::vector<std::string>& environment) {
  const auto inherited = [&](std::string_view variable) {
    return std::ranges::any_of(
        environment, [&](const std::string& entry) { return entry.substr(0, entry.find('=')) == variable; });
  };
  const auto fallback = NextFallback(facts, plan_, inherited);
  if (!fallback) return std::nullopt;
  fallbacks_.push_back(*fallback);
  ApplyFallbacks();
  return fallback->line;
}

void JoiningHosts::ApplyFallbacks() {
  for (const Fallback& fallback : fallbacks_) {
    for (plan::Process& process : plan_.processes) {
      for (const auto& [name, value] : fallback.variables) process.env[name] = value;
    }
    if (std::ranges::find(plan_.warnings, fallback.line) == plan_.warnings.end())
      plan_.warnings.push_back(fallback.line);
  }
}

std::string JoiningHosts::NameOf(const protocol::Host& host) const {
  const auto index = static_cast<std::size_t>(std::ranges::find(hosts_, &host) - hosts_.begin());
  return index < hosts_.size() ? plan_.hosts[index].name : "";
}

bool JoiningHosts::LostAHost() const {
  return std::ranges::any_of(remote_,
                             [](const membership::RemoteHost* host) { return host && host->lost(); });
}

}  // namespace dtrun::job

#include "core/membership/ask_hosts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <set>

#include "core/membership/host_preflight.h"
#include "core/membership/membership.h"
#include "core/membership/network.h"
#include "core/node/local_host.h"
#include "core/process/user_signals.h"

namespace dtrun::membership {
namespace {

// No search if all hosts are one machine.
Result<std::optional<preflight::NetworkFinding>> FindNetwork(asio::io_context& loop,
                                                             process::UserSignals& signals,
                                                             const Inquiry& inquiry,
                                                             const std::vector<Membership::Present>& present,
                                                             protocol::Host& here) {
  const auto is_first = [&](const Membership::Present& one) { return one.machine == present[0].machine; };
  if (inquiry.network_rules.empty() || std::ranges::all_of(present, is_first)) return {std::nullopt};
  std::vector<NetworkSearch::Member> members;
  std::vector<plan::NetworkRule> rules;
  for (const Membership::Present& one : present) {
    rules.push_back(inquiry.network_rules[static_cast<std::size_t>(one.offer.number)]);
    members.push_back({inquiry.hosts[static_cast<std::size_t>(one.offer.number)], one.machine,
                       one.host == nullptr ? &here : one.host});
  }
  NetworkSearch search(loop, signals, std::move(members));
  Result<network::Decision> decision = search.Run(rules);
  if (search.interrupted() != 0) return decision.error();
  return {preflight::NetworkFinding{std::move(decision), search.evidence()}};
}

}  // namespace

Result<Answers> AskHosts(const Cluster& cluster, const Inquiry& inquiry, process::Lifeline& lifeline,
                         const std::function<void(const std::string& line)>& say) {
  ::signal(SIGPIPE, SIG_IGN);
  asio::io_context loop;
  process::UserSignals signals(loop, lifeline);
  std::set<pid_t> shells;
  const std::unique_ptr<protocol::Host> here = node::MakeLocalHost(loop, {});
  Membership membership(loop, signals, cluster, inquiry.job, shells, {{}, [](store::Socket) {}, say});
  const Result<std::vector<Membership::Present>> present = membership.Gather();
  if (!present) return present.error();
  Answers answers;
  answers.missing = membership.Missing();
  // Search for the network first: one that loses large packets swallows a request, but its connectivity check
  // identifies it.
  Result<std::optional<preflight::NetworkFinding>> network =
      FindNetwork(loop, signals, inquiry, *present, *here);
  if (!network) {
    membership.Dismiss(0, "");
    return network.error();
  }
  answers.network = *std::move(network);
  std::vector<RemoteHost*> hosts;
  std::vector<preflight::Request> asked;
  for (const Membership::Present& one : *present) {
    hosts.push_back(one.host);
    answers.hosts.push_back(static_cast<std::size_t>(one.offer.number));
    asked.push_back(inquiry.requests[static_cast<std::size_t>(one.offer.number)]);
    if (one.host != nullptr) one.host->Attach([](const protocol::Event&) {});
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  answers.asked_seconds = now.count();
  HostPreflight preflight(loop, signals);
  Result<std::vector<preflight::Answer>> told = preflight.Run(asked, hosts);
  membership.Dismiss(0, "");
  const bool joined = !answers.network || answers.network->decision.ok();
  if (!told && (joined || preflight.interrupted() != 0)) return told.error();
  if (told) {
    answers.by_host = *std::move(told);
  } else {
    answers.lost = told.error().text;
  }
  return answers;
}

}  // namespace dtrun::membership

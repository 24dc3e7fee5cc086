// Finds the network between the hosts of a job, after they have joined and before any rank starts: surveys
// all hosts, lets them check connectivity, measures the best networks, and decides.
//
// Owned by the root for that time; loop thread. How it decides: core/network/evidence.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/network/decision.h"
#include "core/plan/plan.h"
#include "core/process/user_signals.h"
#include "core/protocol/host.h"

namespace dtrun::membership {

class NetworkSearch {
 public:
  struct Member {
    std::string name;
    std::string machine;  // its identity
    protocol::Host* host = nullptr;
  };

  // All references must outlive it. While it lives, it handles the signals and takes the hosts' events.
  NetworkSearch(asio::io_context& loop, process::UserSignals& signals, std::vector<Member> members);
  ~NetworkSearch();

  // Runs the loop until the decision. `rules` by host. An error names the host, or the pairs of hosts that
  // cannot reach each other; DTRUN_ABORTED if the user ended it.
  Result<network::Decision> Run(const std::vector<plan::NetworkRule>& rules);
  // Repeats the connectivity check by the routes that libraries use, without measurements. For members that
  // are not lost, between generations: their ranks have ended. Evidence::Apart names the pairs that are cut
  // off.
  Result<network::Evidence> CheckAgain(const std::vector<plan::NetworkRule>& rules);
  // The attempts so far; without hosts before the first.
  const network::Evidence& evidence() const { return evidence_; }
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  struct Answer {
    bool due = false;
    std::string refusal;  // refused rule
    network::Offer offer;
    std::vector<network::Attempt> attempts;
    network::Throughput throughput;
  };

  void On(std::size_t host, const protocol::Event& event);
  void Fail(Error error);
  Status Refusals(const std::vector<plan::NetworkRule>& rules) const;
  void Tell(std::size_t host, const protocol::Command& command);
  Status AwaitAnswers();
  Status SurveyAll(const std::vector<plan::NetworkRule>& rules, std::vector<network::HostOffer>* offers);
  Status Connect(std::vector<network::HostOffer> hosts, bool by_device, std::chrono::nanoseconds limit);
  Status MeasureAll(bool by_device, network::Assignment* assignment);
  Status ConfirmLoss(bool by_device, network::Assignment* assignment);
  Status Send(bool by_device, const network::Assignment& assignment,
              std::vector<network::MeasuredLink>* links);
  Status MeasureAgain(bool by_device, std::span<network::Assignment> assignments);

  asio::io_context& loop_;
  process::UserSignals& signals_;
  const std::vector<Member> members_;
  std::vector<Answer> answers_;
  network::Evidence evidence_{{}};
  std::optional<Error> failure_;
  int interrupted_ = 0;
};

// Checks that every entry of a rule selects something on some host with that rule. REQUIRES: as many rules as
// offers.
Status CheckEntries(const std::vector<plan::NetworkRule>& rules,
                    const std::vector<network::HostOffer>& offers);

// Checks that this host has an interface that the rule names. On one host, loopback is accepted.
Status CheckNamesHere(const plan::NetworkRule& rule);

}  // namespace dtrun::membership

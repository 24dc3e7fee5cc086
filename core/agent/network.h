// Finds the network that joins the hosts of a job, once they have joined and before any rank
// starts: surveys all, lets them prove who reaches whom, measures the best, and decides.
//
// Owned by the root for that time; loop thread. How it decides: core/net/evidence.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/agent/host.h"
#include "core/agent/user_signals.h"
#include "core/base/asio.h"
#include "core/net/decision.h"
#include "core/plan/plan.h"

namespace dtrun::agent {

class NetworkSearch {
 public:
  struct Member {
    std::string name;
    std::string machine;  // its identity
    Host* host = nullptr;
  };

  // All outlive it. It handles the signals and takes the hosts' events while it lives.
  NetworkSearch(boost::asio::io_context& loop, UserSignals& signals, std::vector<Member> members);
  ~NetworkSearch();

  // Runs the loop until it is decided. `rules` by host. An error names the host, or the pairs of
  // hosts that do not reach each other; DTRUN_ABORTED when the user ended it.
  Result<net::Decision> Run(const std::vector<plan::NetworkRule>& rules);
  // What was tried so far; of no hosts before anything was.
  const net::Evidence& evidence() const { return evidence_; }
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  struct Answer {
    bool due = false;
    std::string refusal;  // of the rule
    net::Offer offer;
    std::vector<net::Attempt> attempts;
    net::Throughput throughput;
  };

  void On(std::size_t host, const Event& event);
  void Fail(Error error);
  Status Refusals(const std::vector<plan::NetworkRule>& rules) const;
  void Tell(std::size_t host, const Command& command);
  Status AwaitAnswers();
  Status SurveyAll(const std::vector<plan::NetworkRule>& rules, std::vector<net::HostOffer>* offers);
  Status ProveAll(bool by_device, std::chrono::nanoseconds limit);
  Status MeasureAll(bool by_device, net::Assignment* assignment);
  Status ConfirmLoss(bool by_device, net::Assignment* assignment);
  Status Send(bool by_device, const net::Assignment& assignment, std::vector<net::MeasuredLink>* links);
  Status MeasureAgain(bool by_device, std::span<net::Assignment> assignments);

  boost::asio::io_context& loop_;
  UserSignals& signals_;
  const std::vector<Member> members_;
  std::vector<Answer> answers_;
  net::Evidence evidence_{{}};
  std::optional<Error> failure_;
  int interrupted_ = 0;
};

// That every entry of a rule chooses something on some host with that rule. REQUIRES: as many
// rules as offers.
Status CheckEntries(const std::vector<plan::NetworkRule>& rules, const std::vector<net::HostOffer>& offers);

// That the rule leaves some interface of this host.
Status CheckRuleHere(const plan::NetworkRule& rule);

}  // namespace dtrun::agent

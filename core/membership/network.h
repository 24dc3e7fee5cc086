// Finds the network that joins the hosts of a job, once they have joined and before any rank
// starts: surveys all, lets them check who reaches whom, measures the best, and decides.
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

  // All outlive it. It handles the signals and takes the hosts' events while it lives.
  NetworkSearch(boost::asio::io_context& loop, process::UserSignals& signals, std::vector<Member> members);
  ~NetworkSearch();

  // Runs the loop until it is decided. `rules` by host. An error names the host, or the pairs of
  // hosts that do not reach each other; DTRUN_ABORTED when the user ended it.
  Result<network::Decision> Run(const std::vector<plan::NetworkRule>& rules);
  // What was tried so far; of no hosts before anything was.
  const network::Evidence& evidence() const { return evidence_; }
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  struct Answer {
    bool due = false;
    std::string refusal;  // of the rule
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
  Status CheckAll(bool by_device, std::chrono::nanoseconds limit);
  Status MeasureAll(bool by_device, network::Assignment* assignment);
  Status ConfirmLoss(bool by_device, network::Assignment* assignment);
  Status Send(bool by_device, const network::Assignment& assignment,
              std::vector<network::MeasuredLink>* links);
  Status MeasureAgain(bool by_device, std::span<network::Assignment> assignments);

  boost::asio::io_context& loop_;
  process::UserSignals& signals_;
  const std::vector<Member> members_;
  std::vector<Answer> answers_;
  network::Evidence evidence_{{}};
  std::optional<Error> failure_;
  int interrupted_ = 0;
};

// That every entry of a rule chooses something on some host with that rule. REQUIRES: as many
// rules as offers.
Status CheckEntries(const std::vector<plan::NetworkRule>& rules,
                    const std::vector<network::HostOffer>& offers);

// That this host has any interface that the rule names: where nobody is to be reached, loopback will do.
Status CheckNamesHere(const plan::NetworkRule& rule);

}  // namespace dtrun::membership

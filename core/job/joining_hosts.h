// The hosts of a job's next generation and the plan for those that have come: the network that joins
// them is found, each is asked what it can, and GPU paths that were disabled stay so.
//
// Owned by the root's run; loop thread. Its calls run the loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/job/fallback.h"
#include "core/job/run.h"
#include "core/membership/membership.h"
#include "core/process/user_signals.h"
#include "core/protocol/host.h"
#include "core/verdict/facts.h"

namespace dtrun::job {

class JoiningHosts {
 public:
  // `membership`: null for a job on this host alone. All references outlive it.
  JoiningHosts(boost::asio::io_context& loop, process::UserSignals& signals, const RunRequest& request,
               protocol::Host& here, membership::Membership* membership);

  // Whether the plan is another than before; it is the first time. After an error `interrupted` tells
  // whether the user ended it.
  Result<bool> Gather();

  // Gives up one way between GPUs when that may be what failed: the line for the user. `environment`: what
  // ranks inherit.
  std::optional<std::string> TakeFallback(const verdict::Facts& facts,
                                          const std::vector<std::string>& environment);

  const plan::Plan& plan() const { return plan_; }
  // By host of the plan, of those that were gathered last; remote() has null for this one.
  const std::vector<protocol::Host*>& hosts() const { return hosts_; }
  const std::vector<membership::RemoteHost*>& remote() const { return remote_; }
  bool LostAHost() const;
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  Result<std::vector<preflight::Answer>> AskBackends(const std::vector<plan::HostOffer>& offers);
  Result<std::optional<network::Decision>> FindNetwork(
      const std::vector<membership::Membership::Present>& present);
  void ApplyFallbacks();

  boost::asio::io_context& loop_;
  process::UserSignals& signals_;
  const RunRequest& request_;
  protocol::Host& here_;
  membership::Membership* const membership_;
  plan::Plan plan_;
  std::vector<protocol::Host*> hosts_;
  std::vector<membership::RemoteHost*> remote_;
  std::vector<plan::HostOffer> offers_;
  std::vector<Fallback> fallbacks_;  // that were taken
  int interrupted_ = 0;
};

}  // namespace dtrun::job

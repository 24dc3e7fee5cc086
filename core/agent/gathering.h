// The hosts of a job's next generation and the plan for those that have come: the network that joins
// them is found, each is asked what it can, and ways between GPUs that were given up stay so.
//
// Owned by the root's run; loop thread. Its calls run the loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/facts.h"
#include "core/agent/host.h"
#include "core/agent/muster.h"
#include "core/agent/rung.h"
#include "core/agent/user_signals.h"
#include "core/base/asio.h"

namespace dtrun::agent {

class Gathering {
 public:
  // `muster`: null for a job on this host alone. All references outlive it.
  Gathering(boost::asio::io_context& loop, UserSignals& signals, const RunRequest& request, Host& here,
            Muster* muster);

  // Whether the plan is another than before; it is the first time. After an error `interrupted` tells
  // whether the user ended it.
  Result<bool> Gather();

  // Gives up one way between GPUs when that may be what failed: the line for the user. `environment`: what
  // ranks inherit.
  std::optional<std::string> TakeRung(const Facts& facts, const std::vector<std::string>& environment);

  const plan::Plan& plan() const { return plan_; }
  // By host of the plan, of those that were gathered last; remote() has null for this one.
  const std::vector<Host*>& hosts() const { return hosts_; }
  const std::vector<RemoteHost*>& remote() const { return remote_; }
  bool LostAHost() const;
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  Result<std::vector<std::string>> AskBackends(const std::vector<plan::HostOffer>& offers);
  Result<std::optional<net::Decision>> FindNetwork(const std::vector<Muster::Present>& present);
  void ApplyRungs();

  boost::asio::io_context& loop_;
  UserSignals& signals_;
  const RunRequest& request_;
  Host& here_;
  Muster* const muster_;
  plan::Plan plan_;
  std::vector<Host*> hosts_;
  std::vector<RemoteHost*> remote_;
  std::vector<plan::HostOffer> offers_;
  std::vector<Rung> rungs_;  // that were taken
  int interrupted_ = 0;
};

}  // namespace dtrun::agent

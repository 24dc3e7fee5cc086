// The hosts of a job's next generation and the plan for those that have joined: finds the network between
// them, asks each for its capabilities, and keeps disabled GPU paths disabled.
//
// Owned by the root's run; loop thread. Its functions run the loop.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/asio.h"
#include "core/job/run.h"
#include "core/membership/membership.h"
#include "core/membership/network.h"
#include "core/plan/plan.h"
#include "core/process/user_signals.h"
#include "core/protocol/host.h"
#include "core/verdict/facts.h"

namespace dtrun::job {

// Fallback for peer access between GPUs. If start-up checks found nothing but the job fails in the way that
// broken peer access causes, the world restarts with one path less. The known failures
// (core/failures/failures.toml) define which paths a failure rules out and how to disable them. So this
// applies to any program and backend: most programs use their library without dtrun's communicators.
//
// Any thread.
struct Fallback {
  std::vector<std::pair<std::string, std::string>> variables;  // for every rank of the next generation
  std::string line;                                            // for the user
};

// The next lower fallback level, if the first cause of `facts` is such a failure. `inherited`: whether ranks
// inherit a variable from dtrun's environment. A path that the user has configured stays as it is.
std::optional<Fallback> NextFallback(const verdict::Facts& facts, const plan::Plan& plan,
                                     const std::function<bool(std::string_view variable)>& inherited);

class JoiningHosts {
 public:
  // `membership`: null for a job on this host alone. All references must outlive it.
  JoiningHosts(asio::io_context& loop, process::UserSignals& signals, const RunRequest& request,
               protocol::Host& here, membership::Membership* membership);

  // Returns whether the plan has changed; true the first time. After an error, `interrupted` shows whether
  // the user ended it.
  Result<bool> Gather();

  // After a failure of the network: the hosts that do not reach each other now, in a sentence; empty: all do.
  // nullopt: there was nothing to check; otherwise it took over signals and the hosts' events.
  std::optional<std::string> Apart(const verdict::Facts& facts);

  // Disables one path between GPUs if that may have failed; returns the line for the user. `environment`:
  // inherited by ranks.
  std::optional<std::string> TakeFallback(const verdict::Facts& facts,
                                          const std::vector<std::string>& environment);

  const plan::Plan& plan() const { return plan_; }
  // The hosts of the last Gather, by host of the plan; remote() has null for this host.
  const std::vector<protocol::Host*>& hosts() const { return hosts_; }
  // In the plan; empty: it is not among them.
  std::string NameOf(const protocol::Host& host) const;
  const std::vector<membership::RemoteHost*>& remote() const { return remote_; }
  bool LostAHost() const;
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  Result<std::vector<preflight::Answer>> AskBackends(const std::vector<plan::HostOffer>& offers);
  Result<std::optional<network::Decision>> FindNetwork();
  std::vector<membership::NetworkSearch::Member> Members() const;
  bool OnOneMachine() const {
    return std::ranges::count(machines_, machines_.front()) == std::ssize(machines_);
  }
  void ApplyFallbacks();

  asio::io_context& loop_;
  process::UserSignals& signals_;
  const RunRequest& request_;
  protocol::Host& here_;
  membership::Membership* const membership_;
  plan::Plan plan_;
  std::vector<protocol::Host*> hosts_;
  std::vector<membership::RemoteHost*> remote_;
  std::vector<std::string> machines_;  // by host: its identity
  std::vector<plan::HostOffer> offers_;
  std::vector<Fallback> fallbacks_;  // taken so far
  int interrupted_ = 0;
};

}  // namespace dtrun::job

// The connection that starts agents on other hosts: a remote shell, the join request that it is given, and
// the control links that go through it where the network lets none pass (core/protocol/carried_links.h).
//
// Owned by the membership; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/membership/remote_shell.h"
#include "core/protocol/carried_links.h"

namespace dtrun::membership {

class AgentShell {
 public:
  struct Handlers : protocol::CarriedLinks::Handlers {
    std::function<void(const process::Ending& ending)> on_ended;
  };

  // `hosts`: numbers of those that it starts agents on. No handler may destroy it; `pids` as for RemoteShell.
  static Result<std::unique_ptr<AgentShell>> Start(boost::asio::io_context& loop,
                                                   const std::vector<std::string>& argv,
                                                   const std::string& request, const std::vector<int>& hosts,
                                                   std::set<pid_t>& pids, Handlers handlers);

  bool living() const { return shell_->living(); }
  // Whether the agent there runs, as far as it could say so.
  bool HasStarted(int host) const { return links_.HasStarted(host); }

 private:
  AgentShell(boost::asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers);

  process::OutputGate gate_;
  protocol::CarriedLinks links_;
  std::unique_ptr<RemoteShell> shell_;
};

}  // namespace dtrun::membership

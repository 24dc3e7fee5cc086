// The connection that starts agents on other hosts: a remote shell, the join request that it is given, and
// the control links that go through it where the network lets none pass (core/agent/carrier.h).
//
// Owned by the muster; loop thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent/carrier.h"
#include "core/agent/remote_shell.h"

namespace dtrun::agent {

class AgentShell {
 public:
  struct Handlers {
    // What something there printed that is no part of a link.
    std::function<void(const std::string& line)> on_line;
    // A link that the agent of this host has opened; `from` is where the shell has reached it, or empty.
    std::function<void(int host, UniqueFd link, const std::string& from)> on_link;
    std::function<void(const Ending& ending)> on_ended;
  };

  // `hosts`: numbers of those that it starts agents on. No handler may destroy it; `pids` as for RemoteShell.
  static Result<std::unique_ptr<AgentShell>> Start(boost::asio::io_context& loop,
                                                   const std::vector<std::string>& argv,
                                                   const std::string& request, const std::vector<int>& hosts,
                                                   std::set<pid_t>& pids, Handlers handlers);

  bool living() const { return shell_->living(); }
  // Whether the agent there runs, as far as it could say so.
  bool HasStarted(int host) const { return where_.contains(host); }

 private:
  AgentShell(boost::asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers)
      : loop_(loop), hosts_(hosts.begin(), hosts.end()), handlers_(std::move(handlers)) {}
  void OnLine(const std::string& line);
  void OpenLink(const Carried& carried);
  void OnTaken();

  boost::asio::io_context& loop_;
  const std::set<int> hosts_;
  Handlers handlers_;
  std::map<int, std::string> where_;  // hosts whose agents run: where the shell has reached them
  OutputGate gate_;
  std::map<int, std::unique_ptr<Carrier>> carriers_;
  std::unique_ptr<RemoteShell> shell_;
};

}  // namespace dtrun::agent

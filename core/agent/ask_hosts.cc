#include "core/agent/ask_hosts.h"

#include <csignal>
#include <memory>
#include <set>
#include <utility>

#include "core/agent/dismiss.h"
#include "core/agent/examiner.h"
#include "core/agent/muster.h"
#include "core/agent/remote_host.h"
#include "core/agent/user_signals.h"

namespace dtrun::agent {

Result<std::vector<std::string>> AskHosts(const Cluster& cluster, const std::string& job,
                                          const std::vector<std::string>& questions, Lifeline& lifeline,
                                          const std::function<void(const std::string& line)>& say) {
  ::signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context loop;
  UserSignals signals(loop, lifeline);
  std::set<pid_t> shells;
  std::vector<std::unique_ptr<RemoteHost>> owned;
  std::vector<RemoteHost*> hosts;
  Muster muster(loop, signals, cluster, job, shells, say,
                {[&](std::size_t host, std::string_view message) { hosts[host]->OnMessage(message); },
                 [&](std::size_t host, const control::Loss& loss) { hosts[host]->OnLost(loss); }});
  Result<std::vector<JoinedHost>> joined = muster.Run();
  if (!joined) return joined.error();
  hosts.resize(joined->size());
  for (std::size_t i = 0; i < joined->size(); ++i) {
    if (static_cast<int>(i) == cluster.here) continue;
    JoinedHost& host = (*joined)[i];
    owned.push_back(std::make_unique<RemoteHost>(
        loop, cluster.hosts[i], std::move(host.channel), std::move(host.shell), std::vector<std::string>(),
        [](store::Socket) {}, say));
    owned.back()->Attach([](const Event&) {});
    hosts[i] = owned.back().get();
  }
  Examiner examiner(loop, signals);
  Result<std::vector<std::string>> answers = examiner.Run(questions, hosts);
  Dismiss(loop, hosts, 0, "");
  return answers;
}

}  // namespace dtrun::agent

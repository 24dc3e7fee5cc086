#include "core/agent/ask_hosts.h"

#include <csignal>
#include <set>

#include "core/agent/examiner.h"
#include "core/agent/muster.h"
#include "core/agent/user_signals.h"

namespace dtrun::agent {

Result<std::vector<std::string>> AskHosts(const Cluster& cluster, const std::string& job,
                                          const std::vector<std::string>& questions, Lifeline& lifeline,
                                          const std::function<void(const std::string& line)>& say) {
  ::signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context loop;
  UserSignals signals(loop, lifeline);
  std::set<pid_t> shells;
  Muster muster(loop, signals, cluster, job, shells, {{}, [](store::Socket) {}, say});
  const Result<std::vector<Muster::Present>> present = muster.Gather();
  if (!present) return present.error();
  std::vector<RemoteHost*> hosts;
  std::vector<std::string> asked;
  for (const Muster::Present& one : *present) {
    hosts.push_back(one.host);
    asked.push_back(questions[static_cast<std::size_t>(one.offer.number)]);
    if (one.host != nullptr) one.host->Attach([](const Event&) {});
  }
  Examiner examiner(loop, signals);
  Result<std::vector<std::string>> answers = examiner.Run(asked, hosts);
  muster.Dismiss(0, "");
  return answers;
}

}  // namespace dtrun::agent

#include "core/membership/agent_shell.h"

namespace dtrun::membership {

AgentShell::AgentShell(boost::asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers)
    : links_(loop, hosts,
             protocol::Carrier::Wire{[this](const std::string& lines) { shell_->Write(lines); },
                                     [this] { return shell_->queued_bytes(); }, [this] { gate_.Open(); }},
             std::move(handlers)) {}

Result<std::unique_ptr<AgentShell>> AgentShell::Start(boost::asio::io_context& loop,
                                                      const std::vector<std::string>& argv,
                                                      const std::string& request,
                                                      const std::vector<int>& hosts, std::set<pid_t>& pids,
                                                      Handlers handlers) {
  const auto on_ended = handlers.on_ended;
  std::unique_ptr<AgentShell> self(new AgentShell(loop, hosts, std::move(handlers)));
  AgentShell* const shell = self.get();
  auto started = RemoteShell::Start(loop, argv, request, pids,
                                    {[shell](const std::string& line) {
                                       if (!shell->links_.Take(line)) shell->gate_.Close();
                                     },
                                     on_ended, [shell] { shell->links_.OnSent(); }},
                                    &self->gate_);
  if (!started) return started.error();
  self->shell_ = *std::move(started);
  return self;
}

}  // namespace dtrun::membership

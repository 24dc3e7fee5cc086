#include "core/membership/agent_shell.h"

#include <chrono>
#include <utility>

namespace dtrun::membership {

namespace {

// Of noise beyond the most: 8 MiB a second.
constexpr std::uint64_t kNoiseBetweenPauses = 1 << 20;
constexpr std::chrono::milliseconds kNoisePause{125};

}  // namespace

AgentShell::AgentShell(asio::io_context& loop, const std::vector<int>& hosts, Handlers handlers)
    : on_noise_(std::move(handlers.on_noise)),
      pause_(loop),
      links_(loop, hosts,
             protocol::Carrier::Wire{[this](const std::string& lines) { shell_->Write(lines); },
                                     [this] { return shell_->queued_bytes(); }, [this] { gate_.Open(); }},
             {[this, told = std::move(handlers.on_line)](const std::string& line) {
                foreign_ = true;
                told(line);
              },
              std::move(handlers.on_link)}) {}

void AgentShell::Take(const std::string& line) {
  foreign_ = false;
  if (!links_.Take(line)) gate_.Close();
  if (!foreign_) carried_ += line.size() + 1;
}

void AgentShell::SlowDown() {
  const std::uint64_t noise = shell_->printed() - carried_;
  if (noise < next_pause_) return;
  next_pause_ = noise + kNoiseBetweenPauses;
  if (const auto told = std::exchange(on_noise_, {})) told();
  gate_.Close();
  pause_.After(kNoisePause, [this] { gate_.Open(); });
}

Result<std::unique_ptr<AgentShell>> AgentShell::Start(asio::io_context& loop,
                                                      const std::vector<std::string>& argv,
                                                      const std::string& request,
                                                      const std::vector<int>& hosts, std::set<pid_t>& pids,
                                                      Handlers handlers) {
  const auto on_ended = handlers.on_ended;
  std::unique_ptr<AgentShell> self(new AgentShell(loop, hosts, std::move(handlers)));
  AgentShell* const shell = self.get();
  auto started = RemoteShell::Start(loop, argv, request, pids,
                                    {[shell](const std::string& line) { shell->Take(line); }, on_ended,
                                     [shell] { shell->links_.OnSent(); }, [shell] { shell->SlowDown(); }},
                                    &self->gate_);
  if (!started) return started.error();
  self->shell_ = *std::move(started);
  return self;
}

}  // namespace dtrun::membership

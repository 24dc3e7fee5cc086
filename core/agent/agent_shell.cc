#include "core/agent/agent_shell.h"

#include <algorithm>

namespace dtrun::agent {
namespace {

// Of bytes that this process has not taken: beyond, the shell is read no further.
constexpr std::size_t kMostUntaken = 1 << 20;

bool IsAddress(const std::string& text) {
  return text.size() < 100 &&
         text.find_first_not_of("0123456789abcdefABCDEF.:[]%_-ghijklmnopqrstuvwxyz") == std::string::npos;
}

}  // namespace

Result<std::unique_ptr<AgentShell>> AgentShell::Start(boost::asio::io_context& loop,
                                                      const std::vector<std::string>& argv,
                                                      const std::string& request,
                                                      const std::vector<int>& hosts, std::set<pid_t>& pids,
                                                      Handlers handlers) {
  std::unique_ptr<AgentShell> self(new AgentShell(loop, hosts, std::move(handlers)));
  AgentShell* const shell = self.get();
  auto started = RemoteShell::Start(loop, argv, request, pids,
                                    {[shell](const std::string& line) { shell->OnLine(line); },
                                     [shell](const Ending& ending) { shell->handlers_.on_ended(ending); },
                                     [shell] {
                                       for (auto& entry : shell->carriers_) entry.second->OnSent();
                                     }},
                                    &self->gate_);
  if (!started) return started.error();
  self->shell_ = *std::move(started);
  return self;
}

void AgentShell::OnLine(const std::string& line) {
  const auto carried = ParseCarried(line);
  if (!carried) return handlers_.on_line(line);
  if (!hosts_.contains(carried->host)) return;
  if (carried->kind == Carried::Kind::kHere) {
    where_[carried->host] = IsAddress(carried->text) ? carried->text : "";
  } else if (carried->kind == Carried::Kind::kOpen) {
    OpenLink(*carried);
  } else if (const auto found = carriers_.find(carried->host); found != carriers_.end()) {
    found->second->Take(*carried);
    if (found->second->untaken_bytes() > kMostUntaken) gate_.Close();
  }
}

void AgentShell::OpenLink(const Carried& carried) {
  std::unique_ptr<Carrier>& carrier = carriers_[carried.host];
  if (carrier == nullptr) {
    carrier = std::make_unique<Carrier>(
        loop_, carried.host,
        Carrier::Wire{[this](const std::string& lines) { shell_->Write(lines); },
                      [this] { return shell_->queued_bytes(); }, [this] { OnTaken(); }});
  }
  Result<UniqueFd> link = carrier->Open(carried.link);
  if (!link) return handlers_.on_line("cannot open the control link through it: " + link.error().text);
  handlers_.on_link(carried.host, *std::move(link), where_[carried.host]);
}

void AgentShell::OnTaken() {
  const bool behind = std::ranges::any_of(
      carriers_, [](const auto& entry) { return entry.second->untaken_bytes() > kMostUntaken; });
  if (!behind) gate_.Open();
}

}  // namespace dtrun::agent

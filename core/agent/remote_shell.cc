#include "core/agent/remote_shell.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/agent/local_host.h"

namespace dtrun::agent {

Result<std::unique_ptr<RemoteShell>> RemoteShell::Start(boost::asio::io_context& loop,
                                                        const std::vector<std::string>& argv,
                                                        const std::string& line, std::set<pid_t>& pids,
                                                        Handlers handlers) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create a pipe", errno);
  UniqueFd reader(ends[0]);
  std::unique_ptr<RemoteShell> shell(new RemoteShell(pids, std::move(handlers)));
  shell->stdin_ = UniqueFd(ends[1]);
  // Before it starts: a pipe holds more than a line, so this never blocks.
  const std::string whole = line + "\n";
  if (::write(shell->stdin_.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    return Error::System("write to a pipe", errno);
  }
  SpawnRequest request;
  request.rank = -1;
  request.argv = argv;
  request.env = OwnEnvironment();
  request.cwd = "/";
  request.stdin_fd = reader.get();
  Result<Child> child = Spawn(request);
  if (!child) return child.error();
  shell->pid_ = child->pid;
  pids.insert(child->pid);
  RemoteShell* const self = shell.get();
  shell->process_ = std::make_shared<RankProcess>(
      loop, *std::move(child), shell->buffer_,
      [self](output::Stream stream, std::string_view bytes) { self->OnBytes(stream, bytes); },
      [self](const Ending& ending) {
        self->process_->FinishOutput();
        if (self->handlers_.on_ended) self->handlers_.on_ended(ending);
      });
  shell->process_->Watch();
  return shell;
}

RemoteShell::~RemoteShell() {
  handlers_ = {};
  if (process_ == nullptr) return;
  stdin_.Reset();
  process_->Abandon();
  pids_.erase(pid_);
}

void RemoteShell::OnBytes(output::Stream stream, std::string_view bytes) {
  std::string& partial = partial_[stream == output::Stream::kErr];
  const bool end = bytes.empty();
  partial += bytes;
  for (auto at = partial.find('\n'); at != std::string::npos; at = partial.find('\n')) {
    std::string line = partial.substr(0, at);
    partial.erase(0, at + 1);
    while (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && handlers_.on_line) handlers_.on_line(line);
  }
  if (end && !partial.empty() && handlers_.on_line) handlers_.on_line(std::exchange(partial, {}));
}

}  // namespace dtrun::agent

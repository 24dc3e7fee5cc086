#include "core/membership/remote_shell.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/fd.h"
#include "core/node/inheritance.h"

namespace dtrun::membership {
namespace {

// Of noise beyond the most: 8 MiB a second.
constexpr std::uint64_t kNoiseBetweenPauses = 1 << 20;
constexpr std::chrono::milliseconds kNoisePause{125};

}  // namespace

Result<std::unique_ptr<RemoteShell>> RemoteShell::Start(asio::io_context& loop,
                                                        const std::vector<std::string>& argv,
                                                        const std::string& line, std::set<pid_t>& pids,
                                                        Handlers handlers, process::OutputGate* gate) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create a pipe", errno);
  const UniqueFd reader(ends[0]);
  std::unique_ptr<RemoteShell> shell(new RemoteShell(loop, pids, std::move(handlers)));
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);  // the command's end is separate and may block
  shell->stdin_.assign(ends[1]);
  process::SpawnRequest request;
  request.argv = argv;
  request.env = node::OwnEnvironment();
  request.cwd = "/";
  request.stdin_fd = reader.get();
  request.adopts = true;  // ssh's ControlPersist leaves a process, which is not part of the job
  request.option = "cluster.remote_shell";
  Result<process::Child> child = process::Spawn(request);
  if (!child) return child.error();
  shell->pid_ = child->pid;
  pids.insert(child->pid);
  RemoteShell* const self = shell.get();
  shell->process_ = std::make_shared<process::ChildProcess>(
      loop, *std::move(child), shell->buffer_,
      [self](output::Stream stream, std::string_view bytes) { self->OnBytes(stream, bytes); },
      [self](const process::Ending& ending) {
        self->process_->FinishOutput();
        if (self->handlers_.on_ended) self->handlers_.on_ended(ending);
      },
      gate);
  shell->process_->Watch();
  shell->Write(line + "\n");
  return shell;
}

RemoteShell::~RemoteShell() {
  handlers_ = {};
  if (process_ == nullptr) return;
  stdin_.close();
  process_->Abandon();
  pids_.erase(pid_);
}

void RemoteShell::Write(std::string_view bytes) {
  if (!stdin_.is_open()) return;
  queue_.append(bytes);
  if (!waiting_) Flush();
}

void RemoteShell::Flush() {
  while (sent_ < queue_.size()) {
    const ssize_t size = ::write(stdin_.native_handle(), queue_.data() + sent_, queue_.size() - sent_);
    if (size > 0) {
      sent_ += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      waiting_ = true;
      return stdin_.async_wait(Descriptor::wait_write, [this](const error_code& error) {
        if (error) return;  // closed, possibly by the destructor
        waiting_ = false;
        Flush();
        if (!waiting_ && handlers_.on_written) handlers_.on_written();
      });
    } else if (errno != EINTR) {
      stdin_.close();  // it reads no more; its last lines and its end explain why
      break;
    }
  }
  queue_.clear();
  sent_ = 0;
}

void RemoteShell::OnBytes(output::Stream stream, std::string_view bytes) {
  const auto take = [this](const std::string& line) {
    if (handlers_.on_line) handlers_.on_line(line);
  };
  process::LineCutter& lines = lines_[stream == output::Stream::kErr];
  if (bytes.empty()) return lines.Finish(take);
  printed_ += bytes.size();
  lines.Feed(bytes, take);
  if (handlers_.on_bytes) handlers_.on_bytes();
}

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

#include "core/agent/rank_process.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>

namespace dtrun::agent {
namespace {

// The most that a pipe holds by default on any system: what was written before the end.
constexpr std::size_t kPipeBytes = 1024 * 1024;

}  // namespace

RankProcess::RankProcess(boost::asio::io_context& loop, Child child, std::span<char> buffer, Printed printed,
                         std::function<void(const Ending&)> ended)
    : pid_(child.pid),
      handle_(loop, child.handle.Release()),
      out_{Descriptor(loop, child.out.Release()), output::Stream::kOut},
      err_{Descriptor(loop, child.err.Release()), output::Stream::kErr},
      buffer_(buffer),
      printed_(std::move(printed)),
      ended_callback_(std::move(ended)) {}

void RankProcess::Watch() {
  AwaitEnd();
  AwaitOutput(out_);
  AwaitOutput(err_);
}

void RankProcess::AwaitEnd() {
  handle_.async_wait(
      Descriptor::wait_read, [this, self = shared_from_this()](const boost::system::error_code& error) {
        if (error || reaped_) return;
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
          return AwaitEnd();
        }
        ended_ = true;
        Ending ending;
        if (info.si_code == CLD_EXITED) {
          ending.code = info.si_status;
        } else {
          ending.signal = info.si_status;
          ending.core_dumped = info.si_code == CLD_DUMPED;
        }
        ended_callback_(ending);
      });
}

void RankProcess::AwaitOutput(Pipe& pipe) {
  pipe.descriptor.async_wait(Descriptor::wait_read, [this, &pipe, self = shared_from_this()](
                                                        const boost::system::error_code& error) {
    if (error || !pipe.descriptor.is_open()) return;
    ReadOnce(pipe);
    if (pipe.descriptor.is_open()) AwaitOutput(pipe);
  });
}

bool RankProcess::ReadOnce(Pipe& pipe) {
  ssize_t size = 0;
  do {
    size = ::read(pipe.descriptor.native_handle(), buffer_.data(), buffer_.size());
  } while (size < 0 && errno == EINTR);
  if (size > 0) {
    printed_(pipe.stream, {buffer_.data(), static_cast<std::size_t>(size)});
    return true;
  }
  if (size == 0 || errno != EAGAIN) {
    pipe.descriptor.close();
    printed_(pipe.stream, {});
  }
  return false;
}

void RankProcess::Signal(int signal) {
  if (!reaped_) ::kill(-pid_, signal);
}

void RankProcess::Tell(int signal) {
  if (!reaped_) ::kill(pid_, signal);
}

void RankProcess::FinishOutput() {
  for (Pipe* pipe : {&out_, &err_}) {
    for (std::size_t bytes = 0; pipe->descriptor.is_open() && bytes < kPipeBytes; bytes += buffer_.size()) {
      if (!ReadOnce(*pipe)) break;
    }
    if (!pipe->descriptor.is_open()) continue;
    pipe->descriptor.close();
    printed_(pipe->stream, {});
  }
}

void RankProcess::Abandon() {
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ended_ = reaped_ = true;
  handle_.close();
  out_.descriptor.close();
  err_.descriptor.close();
  printed_ = [](output::Stream, std::string_view) {};
  ended_callback_ = [](const Ending&) {};
}

void RankProcess::Reap() {
  if (!ended_ || reaped_) return;
  ::waitpid(pid_, nullptr, WNOHANG);
  handle_.close();
  reaped_ = true;
}

}  // namespace dtrun::agent

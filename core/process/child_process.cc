#include "core/process/child_process.h"

#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "core/process/process.h"

namespace dtrun::process {

ChildProcess::ChildProcess(asio::io_context& loop, Child child, std::span<char> buffer, Printed printed,
                           std::function<void(const Ending&)> ended, OutputGate* gate)
    : pid_(child.pid),
      handle_(loop, child.handle.Release()),
      out_(std::make_shared<OutputPipe>(loop, std::move(child.out), output::Stream::kOut, buffer, printed,
                                        gate)),
      err_(std::make_shared<OutputPipe>(loop, std::move(child.err), output::Stream::kErr, buffer,
                                        std::move(printed), gate)),
      ended_callback_(std::move(ended)) {}

void ChildProcess::Watch() {
  AwaitEnd();
  out_->Watch();
  err_->Watch();
}

void ChildProcess::AwaitEnd() {
  handle_.async_wait(Descriptor::wait_read, [this, self = shared_from_this()](const error_code& error) {
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
    // Read its last output before its end is reported: it may be evidence.
    out_->Pump();
    err_->Pump();
    ended_callback_(ending);
  });
}

void ChildProcess::Signal(int signal) {
  if (!reaped_ && ::kill(-pid_, signal) != 0) Tell(signal);  // it may have left its group
}

void ChildProcess::Tell(int signal) {
  if (!reaped_) ::kill(pid_, signal);
}

void ChildProcess::FinishOutput() {
  out_->Finish();
  err_->Finish();
}

void ChildProcess::Abandon() {
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ended_ = reaped_ = true;
  handle_.close();
  out_->Drop();
  err_->Drop();
  ended_callback_ = [](const Ending&) {};
}

void ChildProcess::Reap() {
  if (!ended_ || reaped_) return;
  ::waitpid(pid_, nullptr, WNOHANG);
  handle_.close();
  reaped_ = true;
}

Stops::Stops(asio::io_context& loop, std::function<void(pid_t child, int signal)> stopped,
             std::function<bool(pid_t child)> ours)
    : timer_(loop), stopped_(std::move(stopped)), ours_(std::move(ours)) {
  Wait();
}

void Stops::Wait() {
  timer_.After(std::chrono::milliseconds(200), [this] {
    Look();
    Wait();
  });
}

void Stops::Look() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0) return;
    if (info.si_code == CLD_CONTINUED) {
      signals_.erase(info.si_pid);
    } else if (!ours_(info.si_pid)) {
      signals_[info.si_pid] = info.si_status;
      stopped_(info.si_pid, info.si_status);
    }
  }
}

int Stops::SignalOf(pid_t child) const {
  const auto found = signals_.find(child);
  return found == signals_.end() ? 0 : found->second;
}

}  // namespace dtrun::process

#include "core/process/user_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace dtrun::process {
namespace {

using Descriptor = asio::posix::stream_descriptor;

UniqueFd TakeSigterm() {
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, nullptr);
  return UniqueFd(::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

UserSignals::UserSignals(asio::io_context& loop, Lifeline& lifeline)
    : lifeline_(lifeline),
      control_(loop, ::dup(lifeline.descriptor())),
      sigterm_(loop, TakeSigterm().Release()),
      timer_(loop) {
  AwaitControl();
  AwaitSigterm();
}

bool UserSignals::EndsJob(int signal) {
  return signal == kTimeLimit || signal == SIGINT || signal == SIGTERM || signal == SIGHUP ||
         signal == SIGQUIT;
}

void UserSignals::Handle(Handler handler) {
  handler_ = std::move(handler);
  while (handler_ && !waiting_.empty()) {
    const int signal = waiting_.front();
    waiting_.pop_front();
    handler_(signal);
  }
  if (time_is_up_) TimeIsUp();
}

void UserSignals::NoteEndIn(int* interrupted) {
  Handle([this, interrupted](int signal) {
    if (signal == SIGTSTP) return Stopped();
    if (signal == Lifeline::kGuardGone || EndsJob(signal)) *interrupted = signal;
  });
}

void UserSignals::EndAfter(std::chrono::nanoseconds limit) {
  limit_ = limit;
  timer_.After(limit, [this] {
    time_is_up_ = true;
    TimeIsUp();
  });
}

void UserSignals::TimeIsUp() {
  if (handler_) Take(kTimeLimit);
}

void UserSignals::Take(int signal) {
  if (signal == Lifeline::kStacksKey) {
    if (stacks_key_) stacks_key_();
    return;
  }
  if (!handler_) return waiting_.push_back(signal);
  const Handler handler = handler_;  // a copy: the call may replace it
  handler(signal);
}

void UserSignals::AwaitControl() {
  control_.async_wait(Descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    for (int signal = lifeline_.Next(); signal != Lifeline::kNothing; signal = lifeline_.Next()) {
      Take(signal);
      if (signal == Lifeline::kGuardGone) return;
    }
    AwaitControl();
  });
}

void UserSignals::AwaitSigterm() {
  sigterm_.async_wait(Descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    signalfd_siginfo info;
    if (::read(sigterm_.native_handle(), &info, sizeof info) == sizeof info) Take(SIGTERM);
    AwaitSigterm();
  });
}

}  // namespace dtrun::process

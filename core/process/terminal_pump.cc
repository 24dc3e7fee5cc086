#include "core/process/terminal_pump.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "core/process/pipe_readers.h"

namespace dtrun::process {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestInterval{200};
// In large jobs, looks may take 1/20 of the time.
constexpr int kIntervalOfLook = 20;

bool InForeground(int terminal) {
  const pid_t group = ::tcgetpgrp(terminal);
  return group < 0 || group == ::getpgrp();  // < 0: not our controlling terminal, so no job control
}

bool PipeIsEmpty(int pipe) {
  int unread = 0;
  return ::ioctl(pipe, FIONREAD, &unread) != 0 || unread == 0;
}

}  // namespace

Result<TerminalPump> TerminalPump::Open(int terminal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create the stdin pipe", errno);
  TerminalPump pump;
  pump.terminal_ = terminal;
  pump.reader_ = UniqueFd(ends[0]);
  pump.writer_ = UniqueFd(ends[1]);
  pump.pipe_ = OpenFileLink(ends[1]);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return pump;
}

pollfd TerminalPump::Wanted() const {
  if (!writer_) return {-1, 0, 0};
  return {terminal_, static_cast<short>(interval_.count() > 0 ? 0 : POLLIN), 0};  // 0: only hangups
}

int TerminalPump::Patience() const {
  if (!writer_ || interval_.count() == 0) return -1;
  return static_cast<int>(std::clamp(std::chrono::ceil<milliseconds>(next_look_ - Clock::now()), milliseconds{0},
                                     milliseconds{1000})
                              .count());
}

void TerminalPump::LookLater(Clock::time_point since) {
  const auto now = Clock::now();
  interval_ = std::clamp(interval_ * 2, milliseconds{1}, kLongestInterval);
  next_look_ = now + std::max<Clock::duration>(interval_, kIntervalOfLook * (now - since));
}

void TerminalPump::Advance(short events) {
  const auto now = Clock::now();
  if (!writer_ || (events == 0 && (interval_.count() == 0 || now < next_look_))) return;
  pollfd typed{terminal_, POLLIN, 0};
  if (::poll(&typed, 1, 0) <= 0) {  // Ctrl-C has flushed it, or the shell has read it
    interval_ = {};
    return;
  }
  const bool hung_up = (typed.revents & ~POLLIN) != 0;
  if (!hung_up && !(InForeground(terminal_) && PipeIsEmpty(writer_.get()) && IsAwaited(pipe_))) return LookLater(now);
  interval_ = {};
  std::array<char, PIPE_BUF> bytes;  // fits an empty pipe
  const ssize_t size = ::read(terminal_, bytes.data(), bytes.size());
  if (size > 0) {
    const ssize_t written = ::write(writer_.get(), bytes.data(), static_cast<std::size_t>(size));
    if (written != size) writer_.Reset();
    return;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size < 0 && errno == EIO && !hung_up) return LookLater(now);  // no longer in the foreground
  writer_.Reset();
}

}  // namespace dtrun::process

#include "core/process/terminal_pump.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

namespace dtrun::process {
namespace {

bool InForeground(int terminal) {
  const pid_t group = ::tcgetpgrp(terminal);
  return group < 0 || group == ::getpgrp();  // < 0: not our terminal, so no job control either
}

}  // namespace

Result<TerminalPump> TerminalPump::Open(int terminal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create the stdin pipe", errno);
  TerminalPump pump;
  pump.terminal_ = terminal;
  pump.reader_ = UniqueFd(ends[0]);
  pump.writer_ = UniqueFd(ends[1]);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return pump;
}

pollfd TerminalPump::Wanted() const {
  if (!writer_) return {-1, 0, 0};
  if (!pending_.empty()) return {writer_.get(), POLLOUT, 0};
  return {background_ ? -1 : terminal_, POLLIN, 0};
}

void TerminalPump::Advance(short events) {
  if (!writer_) return;
  if (!pending_.empty()) {
    if (events == 0) return;
    const ssize_t size = ::write(writer_.get(), pending_.data(), pending_.size());
    if (size > 0) pending_.erase(0, static_cast<std::size_t>(size));
    if (size < 0 && errno != EAGAIN && errno != EINTR) writer_.Reset();
    return;
  }
  if (background_ || events != 0) background_ = !InForeground(terminal_);
  if (background_ || events == 0) return;
  std::array<char, 4096> typed;
  const ssize_t size = ::read(terminal_, typed.data(), typed.size());
  if (size > 0) pending_.assign(typed.data(), static_cast<std::size_t>(size));
  if (size == 0) writer_.Reset();
  if (size < 0 && errno != EAGAIN && errno != EINTR) {
    // EIO: lost the foreground between the check and the read, or the terminal hung up.
    if (errno == EIO && (events & POLLHUP) == 0) {
      background_ = true;
    } else {
      writer_.Reset();
    }
  }
}

}  // namespace dtrun::process

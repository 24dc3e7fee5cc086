#include "core/process/terminal_pump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/process/process.h"
#include "core/stacks/memory.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr long kReadCalls[] = {SYS_read, SYS_readv, SYS_preadv2, SYS_splice, SYS_tee};
constexpr long kPollCalls[] = {SYS_poll, SYS_ppoll};
constexpr long kSelectCalls[] = {SYS_select, SYS_pselect6};
constexpr std::uint64_t kMostPolled = 1 << 16;
constexpr int kDeepestEpoll = 5;  // the kernel's limit

std::string LinkAt(const fs::path& descriptor) {
  std::error_code gone;
  return fs::read_symlink(descriptor, gone).string();
}

bool IsNonBlocking(pid_t pid, int descriptor) {
  std::istringstream fields(ReadKernelFile(fmt::format("/proc/{}/fdinfo/{}", pid, descriptor)));
  std::string name, value;
  while (fields >> name >> value) {
    if (name == "flags:") return (NumberOf<unsigned>(value, 8).value_or(0) & O_NONBLOCK) != 0;
  }
  return false;
}

bool EpollHas(pid_t pid, int epoll, const std::string& pipe, int depth = 0) {
  std::istringstream lines(ReadKernelFile(fmt::format("/proc/{}/fdinfo/{}", pid, epoll)));
  for (std::string line; std::getline(lines, line);) {  // "tfd:        0 events:       19 data: ..."
    std::istringstream fields(line);
    std::string tfd, events;
    int descriptor = -1;
    unsigned mask = 0;
    if (!(fields >> tfd >> descriptor >> events >> std::hex >> mask) || tfd != "tfd:") continue;
    if ((mask & EPOLLIN) == 0) continue;
    const std::string link = LinkAt(fmt::format("/proc/{}/fd/{}", pid, descriptor));
    if (link == pipe) return true;
    if (link == "anon_inode:[eventpoll]" && depth < kDeepestEpoll &&
        EpollHas(pid, descriptor, pipe, depth + 1))
      return true;
  }
  return false;
}

bool PollHas(const stacks::Memory& memory, std::uint64_t polls, std::uint64_t count,
             const std::vector<int>& pipes) {
  if (count > kMostPolled) return true;
  std::vector<pollfd> set(count);
  if (!memory.Copy(polls, set.data(), set.size() * sizeof(pollfd))) return true;
  return std::ranges::any_of(set, [&](const pollfd& poll) {
    return (poll.events & (POLLIN | POLLRDNORM)) != 0 && std::ranges::find(pipes, poll.fd) != pipes.end();
  });
}

bool SelectHas(const stacks::Memory& memory, std::uint64_t count, std::uint64_t set,
               const std::vector<int>& pipes) {
  if (set == 0) return false;
  return std::ranges::any_of(pipes, [&](int pipe) {
    const auto bit = static_cast<std::uint64_t>(pipe);
    if (bit >= count) return false;
    const auto byte = memory.Read<std::uint8_t>(set + bit / 8);
    return !byte || (*byte >> bit % 8 & 1) != 0;
  });
}

bool WaitsFor(pid_t pid, const fs::path& thread, const std::vector<int>& pipes) {
  const std::string text = ReadKernelFile((thread / "syscall").string());
  std::error_code error;
  if (text.empty()) return fs::exists(thread, error);  // it has ended, or the kernel shows nothing
  std::istringstream fields(text);
  long call = -1;
  std::array<std::uint64_t, 3> arguments{};
  if (!(fields >> call)) return false;  // "running"
  for (std::uint64_t& argument : arguments) fields >> std::hex >> argument;
  auto is_one = [&](const auto& calls) { return std::ranges::find(calls, call) != std::end(calls); };
  if (is_one(kReadCalls)) return std::ranges::find(pipes, static_cast<int>(arguments[0])) != pipes.end();
  const stacks::ProcessMemory memory(pid);
  if (is_one(kPollCalls)) return PollHas(memory, arguments[0], arguments[1], pipes);
  return is_one(kSelectCalls) && SelectHas(memory, arguments[0], arguments[1], pipes);
}

bool Awaits(pid_t pid, const std::string& pipe) {
  std::vector<int> pipes, epolls;
  bool has_io_uring = false;
  std::error_code error;
  fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), error), end;
  if (error == std::errc::permission_denied) return true;
  for (; !error && it != end; it.increment(error)) {
    const int descriptor = NumberOf<int>(it->path().filename().native()).value_or(-1);
    const std::string link = LinkAt(it->path());
    if (link == pipe) pipes.push_back(descriptor);
    if (link == "anon_inode:[eventpoll]") epolls.push_back(descriptor);
    has_io_uring = has_io_uring || link == "anon_inode:[io_uring]";
  }
  if (pipes.empty()) return false;
  if (has_io_uring || IsNonBlocking(pid, pipes.front())) return true;
  return std::ranges::any_of(epolls, [&](int epoll) { return EpollHas(pid, epoll, pipe); }) ||
         std::ranges::any_of(EntriesOf(fmt::format("/proc/{}/task", pid)),
                             [&](const fs::path& thread) { return WaitsFor(pid, thread, pipes); });
}

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

// Of whole lines.
int Typed(int terminal) {
  int bytes = 0;
  return ::ioctl(terminal, FIONREAD, &bytes) == 0 ? bytes : 0;
}

}  // namespace

LineEndingKey::LineEndingKey(int terminal, char key) : key_(key), owner_(::getpid()) {
  termios modes{};
  if (::tcgetattr(terminal, &modes) != 0 || (modes.c_lflag & ICANON) == 0 || !InForeground(terminal)) return;
  if (modes.c_cc[VEOL2] != _POSIX_VDISABLE) return;
  modes.c_cc[VEOL2] = static_cast<cc_t>(key);
  if (::tcsetattr(terminal, TCSANOW, &modes) == 0) terminal_ = terminal;
}

LineEndingKey& LineEndingKey::operator=(LineEndingKey&& other) noexcept {
  Undo();
  terminal_ = std::exchange(other.terminal_, -1);
  key_ = other.key_;
  owner_ = other.owner_;
  return *this;
}

void LineEndingKey::Undo() {
  const int terminal = std::exchange(terminal_, -1);
  termios modes{};
  if (terminal < 0 || owner_ != ::getpid() || !InForeground(terminal) || ::tcgetattr(terminal, &modes) != 0)
    return;
  if (modes.c_cc[VEOL2] != static_cast<cc_t>(key_)) return;
  modes.c_cc[VEOL2] = _POSIX_VDISABLE;
  ::tcsetattr(terminal, TCSANOW, &modes);
}

std::string OpenFileLink(int descriptor) { return LinkAt(fmt::format("/proc/self/fd/{}", descriptor)); }

bool IsAwaited(const std::string& pipe) {
  if (pipe.empty() || !ProcIsOurs()) return true;
  return std::ranges::any_of(Descendants(::getpid()), [&](const Process& process) {
    return process.state != 'Z' && Awaits(process.pid, pipe);
  });
}

Result<TerminalPump> TerminalPump::Open(int terminal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create the stdin pipe", errno);
  TerminalPump pump;
  pump.terminal_ = terminal;
  pump.key_ = LineEndingKey(terminal, kStacksKey);
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
  return static_cast<int>(std::clamp(std::chrono::ceil<milliseconds>(next_look_ - Clock::now()),
                                     milliseconds{0}, milliseconds{1000})
                              .count());
}

void TerminalPump::LookLater(Clock::time_point since) {
  const auto now = Clock::now();
  interval_ = std::clamp(interval_ * 2, milliseconds{1}, kLongestInterval);
  next_look_ = now + std::max<Clock::duration>(interval_, kIntervalOfLook * (now - since));
}

bool TerminalPump::Advance(short events) {
  const auto now = Clock::now();
  if (!writer_ || (events == 0 && (interval_.count() == 0 || now < next_look_))) return false;
  pollfd typed{terminal_, POLLIN, 0};
  bool has_input = ::poll(&typed, 1, 0) > 0;
  const bool hung_up = has_input && (typed.revents & ~POLLIN) != 0;
  if (has_input && !hung_up && key_.works() && InForeground(terminal_) && Typed(terminal_) == 1) {
    char only = 0;
    if (::read(terminal_, &only, 1) == 1 && only == kStacksKey) return true;
    empty_lines_ += only == '\n' ? 1 : 0;
    has_input = false;
  }
  if (!has_input && empty_lines_ == 0) {  // Ctrl-C has flushed it, or the shell has read it
    interval_ = {};
    return false;
  }
  const bool awaited = InForeground(terminal_) && PipeIsEmpty(writer_.get()) && IsAwaited(pipe_);
  if (!hung_up && !awaited) return LookLater(now), false;
  interval_ = {};
  if (awaited && empty_lines_ > 0) {
    if (::write(writer_.get(), "\n", 1) != 1) writer_.Reset();
    if (--empty_lines_ > 0) LookLater(now);
    return false;
  }
  std::array<char, PIPE_BUF> bytes;  // fits an empty pipe
  const ssize_t size = ::read(terminal_, bytes.data(), bytes.size());
  if (size > 0) {
    const ssize_t written = ::write(writer_.get(), bytes.data(), static_cast<std::size_t>(size));
    if (written != size) writer_.Reset();
    return false;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size < 0 && errno == EIO && !hung_up) return LookLater(now), false;  // no longer in the foreground
  writer_.Reset();
  return false;
}

}  // namespace dtrun::process

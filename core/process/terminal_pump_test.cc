#include "core/process/terminal_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

struct Terminal {
  Terminal() : keyboard(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (::grantpt(keyboard.get()) != 0 || ::unlockpt(keyboard.get()) != 0) std::abort();
    name = ::ptsname(keyboard.get());
    line = UniqueFd(::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  void Type(const std::string& text) {
    ASSERT_EQ(::write(keyboard.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  UniqueFd keyboard;
  std::string name;
  UniqueFd line;
};

// One turn of the guard's loop, once there is something to do.
void Turn(TerminalPump& pump) {
  pollfd wanted = pump.Wanted();
  ASSERT_EQ(::poll(&wanted, 1, 60000), 1);
  pump.Advance(wanted.revents);
}

std::string ReadSome(int fd) {
  char buffer[256];
  const ssize_t size = ::read(fd, buffer, sizeof buffer);
  return {buffer, static_cast<std::size_t>(size < 0 ? 0 : size)};
}

TEST(TerminalPump, CarriesLinesAndThenTheEnd) {
  Terminal terminal;
  TerminalPump pump = std::move(TerminalPump::Open(terminal.line.get())).value();
  terminal.Type("hello\n");
  Turn(pump);  // reads
  Turn(pump);  // writes
  EXPECT_EQ(ReadSome(pump.reader().get()), "hello\n");
  terminal.Type("\x04");
  Turn(pump);
  EXPECT_EQ(ReadSome(pump.reader().get()), "");
  EXPECT_EQ(pump.Wanted().fd, -1);
}

TEST(TerminalPump, ReadsNoMoreWhileThePipeIsFull) {
  Terminal terminal;
  TerminalPump pump = std::move(TerminalPump::Open(terminal.line.get())).value();
  int free = ::fcntl(pump.reader().get(), F_GETPIPE_SZ);
  while (pump.Wanted().fd == terminal.line.get()) {
    terminal.Type(std::string(1000, 'x') + "\n");
    Turn(pump);
    pollfd wanted = pump.Wanted();
    if (::poll(&wanted, 1, 0) == 1) pump.Advance(wanted.revents);
    ASSERT_GT(free -= 1001, -8192);  // the pipe must be full by then
  }
  pollfd wanted = pump.Wanted();
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);  // waits for room and does not spin
}

TEST(TerminalPump, StopsWhenNobodyReadsAnyMore) {
  ::signal(SIGPIPE, SIG_IGN);
  Terminal terminal;
  TerminalPump pump = std::move(TerminalPump::Open(terminal.line.get())).value();
  pump.reader().Reset();
  terminal.Type("hello\n");
  Turn(pump);
  Turn(pump);
  EXPECT_EQ(pump.Wanted().fd, -1);
}

TEST(TerminalPump, NeverReadsFromTheBackground) {
  Terminal terminal;
  terminal.Type("hello\n");
  const pid_t session = ::fork();
  if (session == 0) {
    ::setsid();
    ::ioctl(terminal.line.get(), TIOCSCTTY, 0);
    const pid_t background = ::fork();
    if (background == 0) {
      ::setpgid(0, 0);  // a read would now stop this process
      TerminalPump pump = std::move(TerminalPump::Open(terminal.line.get())).value();
      pump.Advance(POLLIN);
      const bool waits = pump.Wanted().fd == -1 && pump.Patience() > 0;
      ::signal(SIGTTOU, SIG_IGN);
      ::tcsetpgrp(terminal.line.get(), ::getpgrp());
      pump.Advance(0);  // the wait is over, the job is in the foreground
      ::_exit(waits && pump.Wanted().fd == terminal.line.get() && pump.Patience() < 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(background, &status, WUNTRACED);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(session, &status, 0), session);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace dtrun::process

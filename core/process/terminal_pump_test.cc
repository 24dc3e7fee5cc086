#include "core/process/terminal_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <termios.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using testing::Eventually;

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

std::string ReadSome(int fd) {
  char buffer[256];
  const ssize_t size = ::read(fd, buffer, sizeof buffer);
  return {buffer, static_cast<std::size_t>(size < 0 ? 0 : size)};
}

bool HasInput(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

// A rank: a process that runs `work` with the pipe. What it writes to `told` arrives at `said`.
class Rank {
 public:
  Rank(int pipe, const std::function<void(int pipe, int told)>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    said = UniqueFd(ends[0]);
    const UniqueFd told(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    said.Reset();
    work(pipe, told.get());
    for (;;) ::pause();
  }
  ~Rank() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  UniqueFd said;

 private:
  pid_t pid_ = -1;
};

void Say(int told, const std::string& text) {
  if (::write(told, text.data(), text.size()) < 0) std::abort();
}

// One turn of the guard's loop.
void Turn(TerminalPump& pump) {
  pollfd wanted = pump.Wanted();
  ::poll(&wanted, 1, pump.Patience() < 0 ? 60000 : pump.Patience());
  pump.Advance(wanted.revents);
}

bool TurnsUntilSaid(TerminalPump& pump, const Rank& rank) {
  return Eventually([&] {
    pollfd wanted[2] = {pump.Wanted(), {rank.said.get(), POLLIN, 0}};
    ::poll(wanted, 2, pump.Patience() < 0 ? 60000 : pump.Patience());
    pump.Advance(wanted[0].revents);
    return wanted[1].revents != 0;
  });
}

TerminalPump Opened(const Terminal& terminal) {
  return std::move(TerminalPump::Open(terminal.line.get())).value();
}

constexpr int kManyLooks = 7;

void ReadIn(int pipe, int told) { Say(told, ReadSome(pipe)); }

TEST(TerminalPump, LeavesWhatNoProcessReads) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  const Rank rank(pump.reader().get(), [](int, int) {});
  terminal.Type("hello\n");
  for (int i = 0; i < kManyLooks; ++i) {
    Turn(pump);
    ASSERT_EQ(pump.Wanted().events, 0);  // does not spin
    ASSERT_GE(pump.Patience(), 0);
  }
  EXPECT_EQ(ReadSome(terminal.line.get()), "hello\n");
}

TEST(TerminalPump, TakesALineForEachRead) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("one\ntwo\nthree\n");
  const Rank rank(pump.reader().get(), [](int pipe, int told) {
    ReadIn(pipe, told);
    ReadIn(pipe, told);
  });
  std::string said;
  while (said != "one\ntwo\n") {
    ASSERT_TRUE(TurnsUntilSaid(pump, rank));
    said += ReadSome(rank.said.get());
  }
  for (int i = 0; i < kManyLooks; ++i) Turn(pump);
  EXPECT_EQ(ReadSome(terminal.line.get()), "three\n");
}

// Whether the pump has seen the key within some turns.
bool SeesKey(TerminalPump& pump) {
  return Eventually([&] {
    pollfd wanted = pump.Wanted();
    ::poll(&wanted, 1, 10);
    return pump.Advance(wanted.revents);
  });
}

TEST(TerminalPump, SeesTheKeyForStacksWithoutEnter) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  for (int i = 0; i < 3; ++i) {
    terminal.Type({TerminalPump::kStacksKey});
    EXPECT_TRUE(SeesKey(pump));
  }
  EXPECT_FALSE(HasInput(terminal.line.get()));
}

TEST(TerminalPump, KeepsTheLinesBesideTheKeyForTheReader) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("\n");
  for (int i = 0; i < kManyLooks; ++i) Turn(pump);
  terminal.Type({TerminalPump::kStacksKey});
  EXPECT_TRUE(SeesKey(pump));
  terminal.Type("one\n");
  const Rank rank(pump.reader().get(), [](int pipe, int told) {
    ReadIn(pipe, told);
    ReadIn(pipe, told);
  });
  std::string said;
  while (said != "\none\n") {
    ASSERT_TRUE(TurnsUntilSaid(pump, rank));
    said += ReadSome(rank.said.get());
  }
}

TEST(TerminalPump, LeavesTheTerminalAsItWas) {
  const auto ends_lines = [](const Terminal& terminal) {
    termios modes{};
    EXPECT_EQ(::tcgetattr(terminal.line.get(), &modes), 0);
    return static_cast<char>(modes.c_cc[VEOL2]);
  };
  Terminal terminal;
  const char before = ends_lines(terminal);
  {
    TerminalPump pump = Opened(terminal);
    EXPECT_EQ(ends_lines(terminal), TerminalPump::kStacksKey);
    const pid_t child = ::fork();  // as the agent, which has the pump too
    if (child == 0) {
      { const TerminalPump its_own = std::move(pump); }
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(ends_lines(terminal), TerminalPump::kStacksKey);
  }
  EXPECT_EQ(ends_lines(terminal), before);
}

TEST(TerminalPump, CarriesTheEndToAReader) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("\x04");
  const Rank rank(pump.reader().get(), [](int pipe, int told) {
    for (int fd = 3; fd < told; ++fd) {
      if (fd != pipe) ::close(fd);  // the write end of the pipe
    }
    Say(told, ReadSome(pipe).empty() ? "end" : "more");
  });
  ASSERT_TRUE(TurnsUntilSaid(pump, rank));
  EXPECT_EQ(ReadSome(rank.said.get()), "end");
  EXPECT_EQ(pump.Wanted().fd, -1);
  EXPECT_EQ(pump.Patience(), -1);
}

int EpollOf(int descriptor) {
  const int epoll = ::epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
  return epoll;
}

void WaitInPoll(int descriptor) {
  pollfd wanted{descriptor, POLLIN, 0};
  ::poll(&wanted, 1, -1);
}

void WaitInSelect(int descriptor) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(descriptor, &set);
  ::select(descriptor + 1, &set, nullptr, nullptr, nullptr);
}

void WaitInEpoll(int descriptor) {
  epoll_event event{};
  ::epoll_wait(EpollOf(descriptor), &event, 1, -1);
}

void WaitInEpollOfEpoll(int descriptor) { WaitInEpoll(EpollOf(descriptor)); }

void WaitWithoutBlocking(int descriptor) {
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  while (!HasInput(descriptor)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class WaysToWait : public ::testing::TestWithParam<void (*)(int)> {};

TEST_P(WaysToWait, AreSeen) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("hello\n");
  const Rank rank(pump.reader().get(), [&](int pipe, int told) {
    GetParam()(pipe);
    ReadIn(pipe, told);
  });
  ASSERT_TRUE(TurnsUntilSaid(pump, rank));
  EXPECT_EQ(ReadSome(rank.said.get()), "hello\n");
}

TEST_P(WaysToWait, ForSomethingElseAreNot) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd other(ends[0]), writer(ends[1]);
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("hello\n");
  const Rank rank(pump.reader().get(), [&](int, int) { GetParam()(other.get()); });
  ASSERT_TRUE(Eventually([&] { return IsAwaited(OpenFileLink(other.get())); }));
  for (int i = 0; i < kManyLooks; ++i) Turn(pump);
  EXPECT_EQ(ReadSome(terminal.line.get()), "hello\n");
}

INSTANTIATE_TEST_SUITE_P(TerminalPump, WaysToWait,
                         ::testing::Values(WaitInPoll, WaitInSelect, WaitInEpoll, WaitInEpollOfEpoll,
                                           WaitWithoutBlocking));

TEST(TerminalPump, SeesAThreadThatReads) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("hello\n");
  const Rank rank(pump.reader().get(),
                  [](int pipe, int told) { std::thread([=] { ReadIn(pipe, told); }).detach(); });
  ASSERT_TRUE(TurnsUntilSaid(pump, rank));
  EXPECT_EQ(ReadSome(rank.said.get()), "hello\n");
}

TEST(TerminalPump, GoesOnAfterAFlush) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  terminal.Type("dropped\n");
  Turn(pump);
  ASSERT_EQ(::tcflush(terminal.line.get(), TCIFLUSH), 0);  // as Ctrl-C does
  Turn(pump);
  EXPECT_EQ(pump.Patience(), -1);  // and does not block in a read
  terminal.Type("hello\n");
  const Rank rank(pump.reader().get(), ReadIn);
  ASSERT_TRUE(TurnsUntilSaid(pump, rank));
  EXPECT_EQ(ReadSome(rank.said.get()), "hello\n");
}

TEST(TerminalPump, EndsWhenTheTerminalIsGone) {
  Terminal terminal;
  TerminalPump pump = Opened(terminal);
  const Rank rank(pump.reader().get(), [&](int, int) { terminal.keyboard.Reset(); });
  terminal.Type("hello\n");
  Turn(pump);
  terminal.keyboard.Reset();
  while (pump.Wanted().fd != -1) Turn(pump);
}

// A process of another user, or one hidden by the kernel, may be a reader.
TEST(TerminalPump, CarriesALineWhereItMayNotLook) {
  Terminal terminal;
  terminal.Type("hello\nnext\n");
  const pid_t other = ::fork();
  if (other == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    TerminalPump pump = Opened(terminal);
    const Rank rank(pump.reader().get(), [](int, int told) {
      ::prctl(PR_SET_DUMPABLE, 0);
      Say(told, "ready");
    });
    if (ReadSome(rank.said.get()) != "ready") ::_exit(3);
    for (int i = 0; i < kManyLooks; ++i) Turn(pump);
    ::_exit(ReadSome(pump.reader().get()) == "hello\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(ReadSome(terminal.line.get()), "next\n");  // at most one line is lost
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
      TerminalPump pump = Opened(terminal);
      const Rank rank(pump.reader().get(), ReadIn);
      if (!Eventually([&] { return IsAwaited(OpenFileLink(pump.reader().get())); })) ::_exit(3);
      for (int i = 0; i < kManyLooks; ++i) Turn(pump);
      if (!HasInput(terminal.line.get()) || pump.Patience() < 0) ::_exit(4);
      ::signal(SIGTTOU, SIG_IGN);
      ::tcsetpgrp(terminal.line.get(), ::getpgrp());
      ::_exit(TurnsUntilSaid(pump, rank) && ReadSome(rank.said.get()) == "hello\n" ? 0 : 1);
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

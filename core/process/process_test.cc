#include "core/process/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using ::testing::IsEmpty;

constexpr std::chrono::seconds kPatience{30};

pid_t StartShell(const std::string& script) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  return pid;
}

// Runs `act` and then sleeps.
pid_t StartChild(void (*act)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    act();
    for (;;) ::pause();
  }
  return pid;
}

std::vector<pid_t> LivingBelow(const std::vector<pid_t>& spared = {}) {
  std::vector<pid_t> pids;
  for (const Process& process : Descendants(::getpid(), spared)) {
    if (process.state != 'Z') pids.push_back(process.pid);
  }
  return pids;
}

TEST(Process, IsReadWithItsNameAndGroup) {
  const auto self = ReadProcess(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->group, ::getpgrp());
  EXPECT_EQ(self->state, 'R');
}

TEST(Process, MayHaveANameThatLooksLikeTheFileItself) {
  char before[16];
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "a) Z 1 (b");
  const auto self = ReadProcess(::getpid());
  ::prctl(PR_SET_NAME, before);
  ASSERT_TRUE(self);
  EXPECT_EQ(self->name, "a) Z 1 (b");
  EXPECT_EQ(self->parent, ::getppid());
}

TEST(Process, IsAbsentWhenItHasEnded) {
  const pid_t pid = StartShell("exit 0");
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(ReadProcess(pid));
}

TEST(Descendants, AreFoundAtEveryDepthParentsFirst) {
  BecomeSubreaper();
  const pid_t child = StartShell("sh -c 'sleep 1000 & wait' & wait");
  EXPECT_TRUE(testing::Eventually([] { return LivingBelow().size() == 3; }));
  EXPECT_EQ(LivingBelow().front(), child);
  KillDescendants(kPatience);
}

TEST(Descendants, LeaveSparedChildrenOut) {
  const pid_t spared = StartShell("sleep 1000 & wait");
  const pid_t child = StartShell("exec sleep 1000");
  EXPECT_TRUE(testing::Eventually([&] { return LivingBelow().size() == 3; }));
  EXPECT_EQ(LivingBelow({spared}), std::vector<pid_t>{child});
  EXPECT_THAT(KillDescendants(kPatience, {spared}), IsEmpty());
  EXPECT_EQ(LivingBelow().size(), 2u);
  KillDescendants(kPatience);
}

TEST(KillDescendants, FindsThoseThatFledIntoOtherSessions) {
  BecomeSubreaper();
  testing::ScratchDir dir;
  StartShell("setsid sh -c '(: > " + (dir / "up") + "; setsid sleep 1000 &) ; exec sleep 1000' & exit 0");
  ASSERT_TRUE(testing::Eventually([&] { return std::filesystem::exists(dir / "up"); }));
  EXPECT_THAT(KillDescendants(kPatience), IsEmpty());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(KillDescendants, CatchesUpWithProcessesThatKeepStartingOthers) {
  BecomeSubreaper();
  testing::ScratchDir dir;
  StartShell("f() { : > " + (dir / "up") + "; sleep 0.01; (f) & exit; }; (f) & (f) & (f) &");
  ASSERT_TRUE(testing::Eventually([&] { return std::filesystem::exists(dir / "up"); }));
  EXPECT_THAT(KillDescendants(kPatience), IsEmpty());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(KillDescendants, EndsStoppedProcesses) {
  StartShell("kill -STOP $$");
  EXPECT_THAT(KillDescendants(kPatience), IsEmpty());
}

TEST(SignalDescendants, ReachesAllOfThem) {
  testing::ScratchDir dir;
  const pid_t pid = StartShell("trap 'exit 7' USR1; : > " + (dir / "up") + "; while :; do sleep 0.01; done");
  ASSERT_TRUE(testing::Eventually([&] { return std::filesystem::exists(dir / "up"); }));
  SignalDescendants(SIGUSR1);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  KillDescendants(kPatience);
}

// dash and posix_spawn do this: every signal is blocked while the parent waits for the program to begin.
TEST(Survives, IsNotSaidOfWhoStartsAProgram) {
  const pid_t child = StartChild([] {
    sigset_t all;
    ::sigfillset(&all);
    for (;;) {
      sigset_t before;
      ::sigprocmask(SIG_SETMASK, &all, &before);
      const pid_t program = ::vfork();
      if (program == 0) {
        ::poll(nullptr, 0, 50);
        ::_exit(0);
      }
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      ::waitpid(program, nullptr, 0);
      ::poll(nullptr, 0, 1);
    }
  });
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(Survives(child, SIGUSR1, std::chrono::steady_clock::now() + kPatience));
  EXPECT_THAT(KillDescendants(kPatience), IsEmpty());
}

TEST(Survives, IsSaidOfWhoBlocksHandlesOrIgnoresIt) {
  const pid_t child = StartChild([] {
    ::signal(SIGUSR1, SIG_IGN);
    ::signal(SIGHUP, [](int) {});
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR2);
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  });
  const auto later = std::chrono::steady_clock::now() + kPatience;
  EXPECT_TRUE(testing::Eventually([&] { return Survives(child, SIGUSR2, later); }));
  EXPECT_TRUE(Survives(child, SIGUSR1, later));
  EXPECT_TRUE(Survives(child, SIGHUP, later));
  EXPECT_FALSE(Survives(child, SIGTERM, later));
  EXPECT_THAT(KillDescendants(kPatience), IsEmpty());
}

TEST(StartEnvironment, FindsWholeNamesOnly) {
  testing::ScratchDir dir;
  const std::string up = dir / "up";
  const pid_t pid = StartShell("XDTRUN_A=1 DTRUN_A=2 DTRUN_AB=3 exec sh -c ': > " + up + "; sleep 1000'");
  ASSERT_TRUE(testing::Eventually([&] { return std::filesystem::exists(up); }));
  EXPECT_EQ(StartEnvironment(pid, "DTRUN_A"), "2");
  EXPECT_EQ(StartEnvironment(pid, "DTRUN"), "");
  KillDescendants(kPatience);
  EXPECT_EQ(StartEnvironment(pid, "DTRUN_A"), "");
}

TEST(SignalName, HasTheUsualPrefix) {
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(64), "signal 64");
}

}  // namespace
}  // namespace dtrun::process

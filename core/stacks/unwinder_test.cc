#include "core/stacks/unwinder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/stacks/doing.h"
#include "core/stacks/kernel.h"

namespace dtrun::stacks {
namespace {

using ::testing::HasSubstr;
using Clock = Unwinder::Clock;

class UnwinderTest : public ::testing::Test {
 protected:
  UnwinderTest() {
    std::string name = "/tmp/dtrun-unwinder-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    child_ = ::fork();
    if (child_ == 0) {
      ::sleep(1000);
      ::_exit(0);
    }
  }
  ~UnwinderTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  // A replacement for eu-stack.
  Unwinder Tool(const std::string& script) {
    const auto path = folder_ / "eu-stack";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
    return Unwinder::Find("relative:" + folder_.string());
  }
  char StateOfChild() const { return TasksOf(child_).front().state; }

  std::filesystem::path folder_;
  pid_t child_ = 0;
};

Clock::time_point In(std::chrono::milliseconds time) { return Clock::now() + time; }

TEST_F(UnwinderTest, TakesTheStacksOfALivingProcess) {
  const Unwinder unwinder = Unwinder::Find(::getenv("PATH"));
  if (unwinder.name().empty()) GTEST_SKIP() << "neither eu-stack nor gdb here";
  const Unwound unwound = unwinder.Unwind(child_, In(std::chrono::seconds(60)));
  if (unwound.frames.empty()) GTEST_SKIP() << "ptrace is not allowed here: " << unwound.trouble;
  EXPECT_THAT(unwound.text, HasSubstr("nanosleep"));
  EXPECT_NE(StateOfChild(), 't');
  EXPECT_NE(StateOfChild(), 'T');
}

TEST_F(UnwinderTest, GdbDoesAsWell) {
  if (::access("/usr/bin/gdb", X_OK) != 0) GTEST_SKIP() << "no gdb here";
  std::filesystem::create_symlink("/usr/bin/gdb", folder_ / "gdb");
  const Unwound unwound = Unwinder::Find(folder_.string()).Unwind(child_, In(std::chrono::seconds(60)));
  if (unwound.frames.empty()) GTEST_SKIP() << "ptrace is not allowed here: " << unwound.trouble;
  EXPECT_THAT(unwound.text, HasSubstr("nanosleep"));
}

TEST_F(UnwinderTest, AToolThatHangsIsEndedInTime) {
  const auto begin = Clock::now();
  const Unwound unwound = Tool("exec sleep 1000").Unwind(child_, In(std::chrono::milliseconds(100)));
  EXPECT_EQ(unwound.trouble, "eu-stack took too long");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), 0) << "only the child is left";
}

TEST_F(UnwinderTest, AProcessThatAToolLeftStoppedGoesOn) {
  const Unwinder unwinder = Tool("kill -STOP " + std::to_string(child_) + "; : > " +
                                 (folder_ / "did").string() + "; exec sleep 1000");
  // Long enough for a shell to start on a busy machine; otherwise the tool is killed before it stops
  // anything.
  unwinder.Unwind(child_, In(std::chrono::seconds(3)));
  EXPECT_NE(StateOfChild(), 'T');
}

// The SIGSTOP of a tool's attach is delivered if the tool dies before it has seen it.
TEST_F(UnwinderTest, AProcessGoesOnWhenTheToolIsKilledInTheMiddle) {
  for (const char* const begin : {"kill -STOP ", "sh -c 'kill -STOP $0' "}) {
    const Unwound unwound =
        Tool(begin + std::to_string(child_) + "; kill -KILL $$").Unwind(child_, In(std::chrono::seconds(60)));
    EXPECT_EQ(unwound.trouble, "eu-stack was killed by signal 9");
    EXPECT_NE(StateOfChild(), 'T');
  }
}

TEST_F(UnwinderTest, WhatAToolHasStartedEndsWithIt) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Tool("sleep 1000 > " + fifo.string() + " & exec sleep 1000").Unwind(child_, In(std::chrono::seconds(3)));
  pollfd ended{reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
}

TEST_F(UnwinderTest, SaysWhatTheToolComplainedOf) {
  const Unwound unwound = Tool("echo 'dwfl_linux_proc_report pid 7: Permission denied' >&2; exit 2")
                              .Unwind(child_, In(std::chrono::seconds(60)));
  EXPECT_EQ(unwound.trouble, "eu-stack: dwfl_linux_proc_report pid 7: Permission denied");
  EXPECT_TRUE(unwound.frames.empty());
}

TEST_F(UnwinderTest, ReadsNoMoreThanItKeeps) {
  const Unwound unwound = Tool("head -c 20000000 /dev/zero").Unwind(child_, In(std::chrono::seconds(60)));
  EXPECT_LT(unwound.trouble.size(), 1000u);
  EXPECT_THAT(unwound.trouble, HasSubstr("eu-stack: "));
}

TEST_F(UnwinderTest, AsksNoServerForDebugInformation) {
  ::setenv("DEBUGINFOD_URLS", "https://debuginfod.example", 1);
  const Unwound unwound =
      Tool("echo \"urls '$DEBUGINFOD_URLS'\"").Unwind(child_, In(std::chrono::seconds(60)));
  ::unsetenv("DEBUGINFOD_URLS");
  EXPECT_EQ(unwound.trouble, "eu-stack: urls ''");
}

TEST_F(UnwinderTest, WithoutAToolItSaysSo) {
  const Unwinder unwinder = Unwinder::Find("/nonexistent:bin");
  EXPECT_EQ(unwinder.name(), "");
  EXPECT_THAT(unwinder.Unwind(child_, In(std::chrono::seconds(60))).trouble, HasSubstr("neither eu-stack"));
}

TEST_F(UnwinderTest, AStoppedProcessStaysStopped) {
  ::kill(child_, SIGSTOP);
  Doing doing;
  while (!doing.stopped) doing = LookAt(child_, {});
  for (const char* end : {"exit 0", "exit 1", "kill -KILL $$"}) {
    LookClosely(Tool(end), In(std::chrono::seconds(60)), &doing);
    EXPECT_EQ(StateOfChild(), 'T') << end;
  }
  EXPECT_EQ(doing.stand, Stand::kElsewhere);
}

}  // namespace
}  // namespace dtrun::stacks

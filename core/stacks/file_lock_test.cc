#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/stacks/kernel.h"

namespace dtrun::stacks {
namespace {

// Output of Linux 6.1; a waiter behind another waiter is indented deeper.
constexpr char kLocks[] =
    "1: POSIX  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF\n"
    "2: FLOCK  ADVISORY  WRITE 3517 fd:00:2531448 0 EOF\n"
    "2: -> FLOCK  ADVISORY  WRITE 3548 fd:00:2531448 0 EOF\n"
    "2:  -> FLOCK  ADVISORY  WRITE 3549 fd:00:2531448 0 EOF\n"
    "3: OFDLCK ADVISORY  WRITE -1 00:09:9272 0 EOF\n"
    "3: -> OFDLCK ADVISORY  WRITE 3600 00:09:9272 0 EOF\n"
    "not a lock\n";

TEST(HolderOfLock, IsTheProcessAboveThoseThatWait) {
  EXPECT_EQ(HolderOfLock(kLocks, 3548), 3517);
  EXPECT_EQ(HolderOfLock(kLocks, 3549), 3517);
  EXPECT_EQ(HolderOfLock(kLocks, 3600), 0);  // lock of an open file description, with any holder
  EXPECT_EQ(HolderOfLock(kLocks, 3517), 0);  // waits for nothing
  EXPECT_EQ(HolderOfLock("", 3517), 0);
}

TEST(HolderOfLock, IsFoundInTheKernel) {
  std::string name = "/tmp/dtrun-lock-XXXXXX";
  const int held = ::mkstemp(name.data());
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  const pid_t waits = ::fork();
  if (waits == 0) {
    const int wanted = ::open(name.c_str(), O_RDWR);
    ::flock(wanted, LOCK_EX);
    ::_exit(0);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (HolderOfLock(waits) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(HolderOfLock(waits), ::getpid());
  ::kill(waits, SIGKILL);
  ::waitpid(waits, nullptr, 0);
  ::close(held);
  ::unlink(name.c_str());
}

}  // namespace
}  // namespace dtrun::stacks

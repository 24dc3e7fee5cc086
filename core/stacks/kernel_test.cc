#include "core/stacks/kernel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

namespace dtrun::stacks {
namespace {

// As each tool does that takes native stacks.
TEST(MainTask, StaysInItsSleepAfterItWasStopped) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::sleep(1000);
  }
  const auto until = [child](const std::function<bool(const Task&)>& condition) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);;) {
      const std::vector<Task> tasks = MainTaskOf(child);
      if (!tasks.empty() && condition(tasks.front())) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  const auto sleeps = [](const Task& task) {
    return task.state == 'S' && task.waits == "clock_nanosleep" && task.elsewhere && !task.naps;
  };
  EXPECT_TRUE(until(sleeps));
  ::kill(child, SIGSTOP);
  EXPECT_TRUE(until([](const Task& task) { return task.state == 'T'; }));
  ::kill(child, SIGCONT);
  EXPECT_TRUE(until([](const Task& task) { return task.state == 'S'; }));
  EXPECT_TRUE(sleeps(MainTaskOf(child).front())) << MainTaskOf(child).front().waits;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace dtrun::stacks

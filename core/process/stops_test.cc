#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>
#include <vector>

#include "core/process/child_process.h"

namespace dtrun::process {
namespace {

TEST(Stops, TellsOfAChildThatIsStoppedAndForgetsItWhenItGoesOn) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  boost::asio::io_context loop;
  std::vector<std::pair<pid_t, int>> heard;
  Stops stops(loop, [&](pid_t pid, int signal) { heard.emplace_back(pid, signal); });
  ::kill(child, SIGSTOP);
  while (heard.empty()) loop.run_one();
  EXPECT_EQ(heard, (std::vector<std::pair<pid_t, int>>{{child, SIGSTOP}}));
  EXPECT_EQ(stops.SignalOf(child), SIGSTOP);
  ::kill(child, SIGCONT);
  while (stops.SignalOf(child) != 0) loop.run_one();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  stops.Look();  // without any child
  EXPECT_EQ(heard.size(), 1u);
}

TEST(Stops, KeepsSilentAboutAChildThatAToolOfDtrunHasStopped) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  boost::asio::io_context loop;
  int heard = 0, asked = 0;
  Stops stops(
      loop, [&](pid_t, int) { ++heard; }, [&](pid_t pid) { return ++asked > 0 && pid == child; });
  ::kill(child, SIGSTOP);
  while (asked == 0) stops.Look();
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(stops.SignalOf(child), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace dtrun::process

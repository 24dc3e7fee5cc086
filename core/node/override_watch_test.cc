#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/node/inspector.h"
#include "core/process/testing.h"

namespace dtrun::node {
namespace {

TEST(OverrideWatch, TellsOnceOfARankThatHasChangedThem) {
  const auto start = [](bool changes) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setenv("MASTER_PORT", changes ? "12355" : "29777", 1);
    for (;;) ::pause();
  };
  const std::map<std::string, std::string> given = {{"MASTER_PORT", "29777"}};
  const std::vector<Inspector::Target> ranks = {{4, start(false), 1, given}, {5, start(true), 1, given}};
  boost::asio::io_context loop;
  std::vector<protocol::RendezvousSeen> told;
  int looks_since = 0;
  OverrideWatch watch(loop, ranks, [&](const protocol::RendezvousSeen& looked) { told.push_back(looked); },
                      {std::chrono::milliseconds(1), std::chrono::milliseconds(2)});
  EXPECT_TRUE(process::testing::Eventually([&] {
    loop.run_for(std::chrono::milliseconds(20));
    looks_since += told.empty() ? 0 : 1;
    return looks_since > 3;
  }));
  for (const Inspector::Target& rank : ranks) {
    ::kill(rank.pid, SIGKILL);
    ::waitpid(rank.pid, nullptr, 0);
  }
  ASSERT_EQ(told.size(), 1u);
  ASSERT_EQ(told[0].overrides.size(), 1u);
  EXPECT_EQ(told[0].overrides[0].rank, 5);
  EXPECT_EQ(told[0].overrides[0].now, "12355");
  EXPECT_FALSE(told[0].joined);
}

}  // namespace
}  // namespace dtrun::node

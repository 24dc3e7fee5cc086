#include "core/metrics/usage.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dtrun::metrics {
namespace {

// A child with a child, which both wait.
TEST(UsageOfRanks, CountsDescendantsAndLeavesOutWhatHasEnded) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::fork();
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto used = UsageOf({child, 1});
  ASSERT_EQ(used.size(), 1u);
  EXPECT_GT(used.at(child).memory, 1 << 16);
  EXPECT_GE(used.at(child).processor.count(), 0);
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(UsageOf({child}).empty());
  EXPECT_TRUE(UsageOf({}).empty());
}

}  // namespace
}  // namespace dtrun::metrics

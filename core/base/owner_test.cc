#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/own_file.h"

namespace dtrun {
namespace {

TEST(Owner, KnowsStrangers) {
  EXPECT_FALSE(IsStranger(0));
  EXPECT_FALSE(IsStranger(::geteuid()));
  EXPECT_TRUE(IsStranger(4242));
  EXPECT_FALSE(IsStrangeGroup(::getegid()));
  EXPECT_TRUE(IsStrangeGroup(4242));
}

constexpr int kMayNot = 77;

[[noreturn]] void LookInNamespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) ::_exit(kMayNot);
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  uid_t overflow = 0;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  const bool right = !IsStranger(overflow) && IsStranger(overflow, true) && IsStranger(4242) &&
                     !IsStrangeGroup(overflow) && IsStrangeGroup(4242);
  ::_exit(right ? 0 : 1);
}

// In a user namespace with one user, all other users appear as the kernel's overflow user. Runs in a child
// process because the rule is read once.
TEST(Owner, TakesTheUsersThatANamespaceLacksForRoot) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto right = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kMayNot);
  };
  EXPECT_EXIT(LookInNamespace(), right, "");
}

}  // namespace
}  // namespace dtrun

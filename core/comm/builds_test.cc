#include <gtest/gtest.h>

#include "core/comm/agreement.h"
#include "core/comm/testing/local_spaces.h"

namespace dtrun::comm {
namespace {

TEST(Builds, OfTwoVersionsAreNamedAtTheJoin) {
  testing::LocalSpaces spaces;
  const auto kv = spaces.Space("builds/");
  EXPECT_TRUE(CheckBuilds(*kv, 2, "libdtrun 0.1.0, gloo 1.0 of ABI 0.9").ok());
  EXPECT_TRUE(CheckBuilds(*kv, 0, "libdtrun 0.1.0, gloo 1.0 of ABI 0.9").ok());
  const Status other = CheckBuilds(*kv, 1, "libdtrun 0.1.0, gloo 1.1 of ABI 0.9");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, DTRUN_MISMATCH);
  EXPECT_EQ(
      other.error().text,
      "the ranks have libraries of two versions: rank 2 has libdtrun 0.1.0, gloo 1.0 of ABI 0.9, and rank 1 "
      "has libdtrun 0.1.0, gloo 1.1 of ABI 0.9; install one version on all hosts and in all environments of "
      "Python");
}

}  // namespace
}  // namespace dtrun::comm

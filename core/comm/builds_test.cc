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

TEST(Capabilities, ThatDifferAreNamedAtTheJoin) {
  testing::LocalSpaces spaces;
  const auto kv = spaces.Space("builds/");
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  caps.features = DTRUN_CAP_ABORT;
  caps.dtypes = 0x7fe;
  EXPECT_TRUE(CheckCapabilities(*kv, 2, "demo", caps).ok());
  EXPECT_TRUE(CheckCapabilities(*kv, 0, "demo", caps).ok());
  caps.dtypes = 0x3fe;
  const Status other = CheckCapabilities(*kv, 1, "demo", caps);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, DTRUN_MISMATCH);
  EXPECT_EQ(other.error().ranks, (std::vector<int>{2, 1}));
  EXPECT_TRUE(other.error().text.starts_with(
      "backend 'demo' says on rank 2 that it can do: features 0x1, ops 0x0, dtypes 0x7fe, "))
      << other.error().text;
  EXPECT_NE(other.error().text.find("; and on rank 1: features 0x1, ops 0x0, dtypes 0x3fe, "),
            std::string::npos);
}

}  // namespace
}  // namespace dtrun::comm

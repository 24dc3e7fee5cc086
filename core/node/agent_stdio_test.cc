#include "core/node/agent_stdio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::node {
namespace {

using ::testing::ElementsAre;

// tests/test_joining.py tests the agent itself.
TEST(ReachedAt, IsTheServersEndOfTheConnection) {
  EXPECT_EQ(ReachedAt("10.0.0.1 50000 10.0.0.7 22"), "10.0.0.7:22");
  EXPECT_EQ(ReachedAt("fd00::1 50000 fd00::7 2222"), "[fd00::7]:2222");
  EXPECT_EQ(ReachedAt(nullptr), "");
  EXPECT_EQ(ReachedAt("10.0.0.1 50000"), "");
}

TEST(NearestFirst, PutsTheAddressFirstThatHasLedHere) {
  const std::vector<std::string> names = {"10.0.0.1", "10.1.0.1", "10.2.0.1"};
  EXPECT_THAT(NearestFirst(names, "10.2.0.1 50000 10.2.0.7 22", nullptr),
              ElementsAre("10.2.0.1", "10.0.0.1", "10.1.0.1"));
  EXPECT_THAT(NearestFirst(names, nullptr, "10.1.0.1"), ElementsAre("10.1.0.1", "10.0.0.1", "10.2.0.1"));
  EXPECT_THAT(NearestFirst(names, "10.2.0.1 1 x 22", "10.1.0.1"),
              ElementsAre("10.2.0.1", "10.1.0.1", "10.0.0.1"));
  EXPECT_EQ(NearestFirst(names, "192.168.0.1 50000 x 22", "node0"), names);  // behind NAT
  EXPECT_EQ(NearestFirst(names, nullptr, nullptr), names);
}

}  // namespace
}  // namespace dtrun::node

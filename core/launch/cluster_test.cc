#include "core/launch/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/launch/testing.h"

namespace dtrun::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SettingsOf;

// Two manually started hosts, and additional options.
spec::JobSpec ManualWith(std::vector<std::string> more) {
  more.insert(more.end(), {"cluster.hosts=node0,node1", "cluster.connect=manual"});
  return SettingsOf(std::move(more));
}

// The user has no key except the variable's.
class ClusterOfTest : public ::testing::Test {
 protected:
  ClusterOfTest() {
    ::setenv("HOME", "/nowhere", 1);
    ::setenv(kClusterKey, std::string(64, 'a').c_str(), 1);
  }
  ~ClusterOfTest() override { ::unsetenv(kClusterKey); }
};

TEST_F(ClusterOfTest, IsNoneOfOneMachine) {
  const auto cluster = ClusterOf(SettingsOf({}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_FALSE(*cluster);
  const auto request = JoinRequestOf(SettingsOf({}));
  ASSERT_TRUE(request);
  EXPECT_FALSE(*request);
}

TEST_F(ClusterOfTest, IsNoneOfThisMachineByName) {
  const auto cluster = ClusterOf(SettingsOf({"cluster.hosts=localhost:2"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_FALSE(*cluster);
}

TEST_F(ClusterOfTest, HasTheHostsAndWhereTheRootIs) {
  const auto cluster = ClusterOf(ManualWith({"cluster.root=[fe80::1]:29400", "cluster.host_index=0"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  ASSERT_TRUE(*cluster);
  EXPECT_EQ((*cluster)->connect, membership::Cluster::Connect::kManual);
  EXPECT_THAT((*cluster)->hosts, ElementsAre("node0", "node1"));
  EXPECT_THAT((*cluster)->names, ElementsAre("fe80::1"));
  EXPECT_EQ((*cluster)->port, 29400);
  EXPECT_EQ((*cluster)->here, 0);
  EXPECT_EQ((*cluster)->min_hosts, 2u);
  EXPECT_EQ((*cluster)->key_origin, kClusterKey);
}

TEST_F(ClusterOfTest, TakesAnIpv6AddressWithoutBracketsAsAWhole) {
  const auto cluster =
      ClusterOf(ManualWith({"cluster.root=fd00::2", "cluster.root_port=29400", "cluster.host_index=0"}));
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_THAT((*cluster)->names, ElementsAre("fd00::2"));
  EXPECT_EQ((*cluster)->port, 29400);
}

TEST_F(ClusterOfTest, SaysWhatIsWrongWithTheRoot) {
  for (const char* root : {"node0:0", "node0:65536", "node0:x", ":29400", "[fe80::1",
                           "::::", "[fe80::1]x:29400", "[node0]:29400", "http://node0:29400"}) {
    const auto cluster = ClusterOf(ManualWith({std::string("cluster.root=") + root, "cluster.host_index=0"}));
    ASSERT_FALSE(cluster) << root;
    EXPECT_THAT(cluster.error().text, AllOf(HasSubstr("cluster.root"), HasSubstr(root)));
  }
}

TEST_F(ClusterOfTest, OnlyAnotherHostThanTheFirstJoins) {
  const auto first = JoinRequestOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=0"}));
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_FALSE(*first);
  const auto second = JoinRequestOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=1"}));
  ASSERT_TRUE(second) << second.error().text;
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->key_origin, kClusterKey);
}

TEST_F(ClusterOfTest, AManualStartNeedsARootANumberAndAKey) {
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.host_index=0"})).error().text,
              HasSubstr("needs cluster.root = \"ADDRESS:PORT\""));
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.root=node0:29400"})).error().text,
              HasSubstr("give --host-index"));
  EXPECT_THAT(ClusterOf(ManualWith({"cluster.root=node0:29400", "cluster.host_index=2"})).error().text,
              HasSubstr("cluster.host_index: 2 is out of range"));
  ::unsetenv(kClusterKey);
  const auto spec = ManualWith({"cluster.root=node0:29400", "cluster.host_index=0"});
  EXPECT_THAT(ClusterOf(spec).error().text, HasSubstr("needs a key that all hosts share"));
  KeyRule rule;
  rule.refusal = "no secret";
  EXPECT_EQ(ClusterOf(spec, rule).error().text, "no secret");
  rule.otherwise = KeyRule::Otherwise::kText;
  rule.origin = "--rdzv-id";
  const auto cluster = ClusterOf(spec, rule);
  ASSERT_TRUE(cluster) << cluster.error().text;
  EXPECT_EQ((*cluster)->key_origin, "--rdzv-id");
}

}  // namespace
}  // namespace dtrun::launch

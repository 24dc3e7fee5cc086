#include "core/comm/hierarchy/topology.h"

#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

TEST(Topology, NumbersHostsInTheOrderOfTheirFirstRank) {
  const Topology topology = MakeTopology(3, {8, 5, 8, 5, 5});
  EXPECT_EQ(topology.host_of, (std::vector<int>{0, 1, 0, 1, 1}));
  EXPECT_EQ(topology.place_of, (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(topology.members, (std::vector<std::vector<int>>{{0, 2}, {1, 3, 4}}));
  EXPECT_EQ(topology.Leaders(), (std::vector<int>{0, 1}));
  EXPECT_EQ(topology.MostMembers(), 3u);
  EXPECT_EQ(topology.host(), 1);
  EXPECT_FALSE(topology.Leads());
  EXPECT_FALSE(topology.Together());
  EXPECT_FALSE(topology.Apart());
}

TEST(Topology, KnowsWhenOneLayerDoes) {
  EXPECT_TRUE(MakeTopology(0, {3, 3}).Together());
  EXPECT_TRUE(MakeTopology(1, {3, 1, 2}).Apart());
  EXPECT_TRUE(MakeTopology(0, {7}).Together());
}

}  // namespace
}  // namespace dtrun::comm

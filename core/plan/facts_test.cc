#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Plan PlanOf(const std::vector<plugin::LaunchInfo>& info, int hosts) {
  Plan plan;
  for (int i = 0; i < hosts; ++i) plan.hosts.push_back({"node" + std::to_string(i)});
  AddFacts({"nccl", "", "", info}, &plan);
  return plan;
}

plugin::LaunchInfo Says(const std::string& p2p) { return {{{"library", "NCCL 2"}, {"p2p", p2p}}, {}}; }

TEST(Facts, ThatAllHostsShareAreSaidOnce) {
  const Plan plan = PlanOf({Says("on"), Says("on")}, 2);
  EXPECT_THAT(plan.backend_facts, ElementsAre(Pair("library", "NCCL 2"), Pair("p2p", "on")));
}

TEST(Facts, ThatDifferNameTheirHosts) {
  const Plan plan = PlanOf({Says("on"), Says("off"), Says("on")}, 3);
  EXPECT_THAT(plan.backend_facts,
              ElementsAre(Pair("library", "NCCL 2"), Pair("p2p", "node0, node2: on; node1: off")));
  EXPECT_THAT(plan.hosts[1].backend_facts, ElementsAre(Pair("library", "NCCL 2"), Pair("p2p", "off")));
}

TEST(Facts, ThatAllDifferAreNotAllSaidAtOnce) {
  const Plan plan = PlanOf({Says("a"), Says("b"), Says("c"), Says("d"), Says("e")}, 5);
  EXPECT_EQ(plan.backend_facts[1].second,
            "node0: a; node1: b; node2: c; another on each of 2 more, in plan.json");
}

TEST(Facts, OfPairsOfDevicesAreLeftToTheHosts) {
  const Plan plan = PlanOf({{{{"peer 0>1", "proven 10 GB/s"}}, {}}}, 2);
  EXPECT_TRUE(plan.backend_facts.empty());
  EXPECT_THAT(plan.hosts[1].backend_facts,
              ElementsAre(Pair("peer 0>1", "proven 10 GB/s")));  // assumed to equal the first host
}

}  // namespace
}  // namespace dtrun::plan

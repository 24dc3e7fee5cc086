#include "core/binding/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/number.h"

namespace dtrun::binding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOneNode[] = "0.0=0,1,2,3";
constexpr char kTwoSockets[] = "0.0=0,1,2,3;1.1=4,5,6,7";
constexpr char kTwoSocketsOfTwoNodes[] = "0.0=0,1;0.1=2,3;1.2=4,5;1.3=6,7";
constexpr char kHyperthreads[] = "0.0=0+4,1+5;1.1=2+6,3+7";

struct Case {
  const char* machine;
  int ranks;
  const char* policy;
  std::vector<int> gpu_nodes = {};
};

Binding BindOn(const Case& c) {
  return Bind(*ParseTopology(c.machine), c.ranks, ParsePolicy(c.policy), c.gpu_nodes);
}

std::vector<std::string> Sets(const Case& c) {
  std::vector<std::string> out;
  for (const auto& processors : BindOn(c).processors) out.push_back(NumberList(processors));
  return out;
}

std::string Text(const Case& c) { return BindOn(c).text; }

TEST(Quota, CountsAsCores) {
  const std::string machine = std::string(kOneNode) + "@2";
  const auto bound = BindOn({machine.c_str(), 2, "compact"});
  EXPECT_EQ(bound.cores, 2);
  EXPECT_EQ(bound.text,
            "2 cores per rank, compact (processors of rank 0: 0-1, rank 1: 2-3); CPU quota of 2 on 4 cores");
  EXPECT_EQ(Text({machine.c_str(), 3, "compact"}), "none: 3 ranks share 2 cores; CPU quota of 2 on 4 cores");
  EXPECT_EQ(BindOn({machine.c_str(), 1, "none"}).cores, 2);
  EXPECT_EQ(Text({"0.0=0,1@4", 2, "none"}), "none");
}

TEST(Core, GivesEachRankOneWholeCore) {
  EXPECT_THAT(Sets({kTwoSockets, 2, "core"}), ElementsAre("0", "4"));
  EXPECT_THAT(Sets({kHyperthreads, 4, "core"}), ElementsAre("0,4", "1,5", "2,6", "3,7"));
  const auto bound = BindOn({kTwoSockets, 2, "core"});
  EXPECT_EQ(bound.cores, 2);
  EXPECT_EQ(bound.text, "1 core per rank (processors of rank 0: 0, rank 1: 4)");
}

TEST(Compact, GivesNeighboursInRankNeighbouringCores) {
  EXPECT_THAT(Sets({kTwoSockets, 4, "compact"}), ElementsAre("0-1", "2-3", "4-5", "6-7"));
  EXPECT_EQ(Text({kTwoSockets, 4, "compact"}),
            "2 cores per rank, compact (processors of rank 0: 0-1, rank 1: 2-3, rank 2: 4-5, rank 3: 6-7)");
}

TEST(Compact, LeavesNoCoreIdleWhenTheyDoNotDivide) {
  EXPECT_THAT(Sets({kTwoSockets, 3, "compact"}), ElementsAre("0-1", "2-4", "5-7"));
  EXPECT_EQ(Text({kTwoSockets, 3, "compact"}),
            "2 to 3 cores per rank, compact (processors of rank 0: 0-1, rank 1: 2-4, rank 2: 5-7)");
}

TEST(Compact, GivesASingleRankEverything) { EXPECT_THAT(Sets({kOneNode, 1, "compact"}), ElementsAre("0-3")); }

TEST(Compact, GivesWholeCoresWithTheirHyperthreads) {
  EXPECT_THAT(Sets({kHyperthreads, 4, "compact"}), ElementsAre("0,4", "1,5", "2,6", "3,7"));
  EXPECT_THAT(Sets({kHyperthreads, 2, "compact"}), ElementsAre("0-1,4-5", "2-3,6-7"));
}

TEST(Spread, PutsNeighboursInRankOnDifferentNodes) {
  EXPECT_THAT(Sets({kTwoSockets, 4, "spread"}), ElementsAre("0-1", "4-5", "2-3", "6-7"));
  EXPECT_THAT(Sets({kTwoSocketsOfTwoNodes, 8, "spread"}),
              ElementsAre("0", "2", "4", "6", "1", "3", "5", "7"));
}

TEST(Spread, DealsOutUnevenNodesToTheLast) {
  EXPECT_THAT(Sets({"0.0=0;1.1=1,2,3", 4, "spread"}), ElementsAre("0", "1", "2", "3"));
}

TEST(PerNuma, LetsRanksOfANodeShareIt) {
  EXPECT_THAT(Sets({kTwoSocketsOfTwoNodes, 8, "per-numa"}),
              ElementsAre("0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"));
  EXPECT_EQ(Text({kTwoSockets, 4, "per-numa"}),
            "4 cores per rank, per-numa (processors of ranks 0-1: 0-3, ranks 2-3: 4-7)");
}

TEST(PerNuma, GivesARankWhoseShareSpansNodesAllOfThem) {
  EXPECT_THAT(Sets({kTwoSocketsOfTwoNodes, 2, "per-numa"}), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Sets({kTwoSockets, 3, "per-numa"}), ElementsAre("0-3", "0-7", "4-7"));
}

TEST(PerSocket, LetsRanksOfASocketShareIt) {
  EXPECT_THAT(Sets({kTwoSocketsOfTwoNodes, 4, "per-socket"}), ElementsAre("0-3", "0-3", "4-7", "4-7"));
}

TEST(None, LeavesRanksAsTheyAre) {
  const Binding binding = BindOn({kTwoSockets, 2, "none"});
  EXPECT_FALSE(binding.bound());
  EXPECT_EQ(binding.processors.size(), 2u);
  EXPECT_EQ(binding.text, "none");
}

TEST(Auto, KeepsRanksOnTheirNodes) {
  EXPECT_THAT(Sets({kTwoSockets, 4, "auto"}), ElementsAre("0-3", "0-3", "4-7", "4-7"));
  EXPECT_EQ(Text({kTwoSockets, 4, "auto"}),
            "4 cores per rank, auto: per-numa (processors of ranks 0-1: 0-3, ranks 2-3: 4-7)");
}

TEST(Auto, BindsNothingWhereThereIsOneNodeOrOneRank) {
  EXPECT_FALSE(BindOn({kOneNode, 2, "auto"}).bound());
  EXPECT_FALSE(BindOn({kTwoSockets, 1, "auto"}).bound());
  EXPECT_EQ(Text({kOneNode, 2, "auto"}), "none (auto: one NUMA node)");
}

TEST(EveryPolicy, BindsNothingWithMoreRanksThanCoresAndSaysSo) {
  for (const std::string& policy : PolicyNames()) {
    const Binding binding = BindOn({kHyperthreads, 5, policy.c_str()});
    EXPECT_FALSE(binding.bound()) << policy;
    EXPECT_EQ(binding.processors.size(), 5u) << policy;
    EXPECT_EQ(binding.text, policy == "none" ? "none" : "none: 5 ranks share 4 cores");
  }
}

TEST(EveryPolicy, TellsHowManyCoresTheRanksHave) {
  for (const std::string& policy : PolicyNames())
    EXPECT_EQ(BindOn({kHyperthreads, 3, policy.c_str()}).cores, policy == "core" ? 3 : 4) << policy;
}

TEST(NearGpus, DividesTheCoresBesideEachGpu) {
  EXPECT_THAT(Sets({kTwoSockets, 4, "compact", {1, 1, 0, 0}}), ElementsAre("4-5", "6-7", "0-1", "2-3"));
  EXPECT_THAT(Sets({kTwoSockets, 2, "auto", {1, 1}}), ElementsAre("4-7", "4-7"));
  EXPECT_EQ(Text({kTwoSockets, 2, "auto", {1, 1}}),
            "4 cores per rank, auto: per-numa, near its GPU (processors of ranks 0-1: 4-7)");
}

TEST(NearGpus, CountsTheCoresThere) {
  EXPECT_EQ(BindOn({kTwoSockets, 2, "auto", {1, 1}}).cores, 4);
  EXPECT_EQ(BindOn({kTwoSockets, 3, "auto", {0, 0, 1}}).cores, 6) << "the least is 2 for each of 3";
}

TEST(NearGpus, BindsASingleRankToo) { EXPECT_THAT(Sets({kTwoSockets, 1, "auto", {1}}), ElementsAre("4-7")); }

TEST(NearGpus, GivesWayWhereAGpusNodeIsUnknownOrHasTooFewCores) {
  EXPECT_THAT(Sets({kTwoSockets, 2, "compact", {-1, 1}}), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Sets({kTwoSockets, 2, "compact", {7, 7}}), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Sets({"0.0=0;1.1=1,2,3", 2, "compact", {0, 0}}), ElementsAre("0-1", "2-3"));
}

TEST(BindingText, ShowsTheFirstSetsOfMany) {
  EXPECT_THAT(Text({kTwoSockets, 8, "compact"}),
              HasSubstr("(processors of rank 0: 0, rank 1: 1, rank 2: 2, rank 3: 3, ...)"));
}

}  // namespace
}  // namespace dtrun::binding

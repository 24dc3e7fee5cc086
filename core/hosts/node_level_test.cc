#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

const Environment kHost = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "master-0"}, {"MASTER_PORT", "2222"}};

Environment NodeWith(const Environment& changes) {
  Environment out = kHost;
  for (const auto& [name, value] : changes) out[name] = value;
  return out;
}

TEST(Gcp, RankIsTheNumberOfTheHost) {
  const auto allocation = ReadGcp(kHost);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->count, (HostCount{2, 2}));
  EXPECT_EQ(allocation->root_address, "master-0");
  EXPECT_EQ(allocation->rank_port, 2222);
  EXPECT_EQ(allocation->processes_per_host, "");
}

TEST(Gcp, ALocalRankMeansThatRankNumbersProcesses) {
  const auto allocation = ReadGcp(NodeWith({{"LOCAL_RANK", "1"}}));
  ASSERT_FALSE(allocation.ok());
  EXPECT_THAT(allocation.error().text, HasSubstr("LOCAL_RANK=1 is set, so RANK numbers processes"));
}

TEST(Gcp, NamesAllThatIsMissingOrMalformed) {
  const auto nothing = ReadGcp({});
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().text,
              HasSubstr("RANK is unset; WORLD_SIZE is unset; MASTER_ADDR is unset; MASTER_PORT is unset"));
  const auto wrong = ReadGcp(NodeWith({{"RANK", "2"}, {"MASTER_PORT", "70000"}}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text, HasSubstr("RANK says 2, WORLD_SIZE says 2: the last of 2 is 1"));
  EXPECT_THAT(wrong.error().text, HasSubstr("MASTER_PORT says 70000; the highest port is 65535"));
}

TEST(Pai, SaysTheProcessesPerHost) {
  EXPECT_EQ(ReadPai(NodeWith({{"NPROC_PER_NODE", "8"}}))->processes_per_host, "8");
  EXPECT_FALSE(ReadPai(NodeWith({{"NPROC_PER_NODE", "many"}})).ok());
}

TEST(Spark, ATaskHasOneProcess) {
  const auto allocation = ReadSpark(NodeWith({{"NODE_RANK", "1"}, {"LOCAL_RANK", "0"}}));
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->processes_per_host, "1");
  const auto other = ReadSpark(NodeWith({{"NODE_RANK", "0"}}));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().text, HasSubstr("NODE_RANK says 0, but RANK says otherwise"));
}

}  // namespace
}  // namespace dtrun::hosts

#include "gathering.h"

#include <gtest/gtest.h>

namespace dtrun::nccl_plugin {
namespace {

TEST(Progress, SurvivesTheKeyValueSpace) {
  Progress progress;
  progress.collective = 17;
  progress.messages = {{0, 3}, {5, 1}};
  const Progress read = Progress::Decode(progress.Encode());
  EXPECT_EQ(read.collective, 17u);
  EXPECT_EQ(read.messages, progress.messages);
  EXPECT_EQ(Progress::Decode(Progress().Encode()).collective, 0u);
}

TEST(RanksText, ListsAFewAndCountsTheRest) {
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(RanksText({1, 2, 3, 4, 5}), "ranks 1, 2, 3, 4 and 5");
  EXPECT_EQ(RanksText({1, 2, 3, 4, 5, 6}), "ranks 1, 2, 3, 4 and 2 more");
}

}  // namespace
}  // namespace dtrun::nccl_plugin

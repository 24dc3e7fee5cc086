#include "core/comm/shm/layout.h"

#include <gtest/gtest.h>

namespace dtrun::shm {
namespace {

TEST(Layout, AlignsEveryAreaForAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    const Layout layout(ranks);
    const int last = ranks - 1;
    for (const std::uint32_t turn : {0u, 1u}) {
      EXPECT_EQ(layout.stage_at(last, turn) % kLine, 0u) << ranks;
      EXPECT_EQ(layout.result_at(last, turn) % kLine, 0u) << ranks;
      EXPECT_EQ(layout.counts_at(last, turn) % sizeof(std::uint64_t), 0u) << ranks;
    }
    EXPECT_EQ(layout.rank_at(last) % kLine, 0u) << ranks;
    EXPECT_EQ(layout.channel_at(last, last) % kLine, 0u) << ranks;
  }
}

TEST(Layout, KeepsTheAreasApart) {
  for (const int ranks : {1, 2, 3, 7, 64, 128}) {
    const Layout layout(ranks);
    EXPECT_LE(sizeof(FailureRecord), layout.rank_at(0));
    EXPECT_LE(layout.rank_at(ranks), layout.counts_at(0, 0));
    EXPECT_LE(layout.counts_at(ranks, 0), layout.stage_at(0, 0));
    EXPECT_EQ(layout.stage_at(ranks, 0), layout.result_at(0, 0));
    EXPECT_EQ(layout.result_at(ranks, 0), layout.channel_at(0, 0));
    EXPECT_EQ(layout.channel_at(ranks, 0), layout.total);
    // A rank's result holds its share of a stage.
    EXPECT_GE(layout.result_bytes * static_cast<std::size_t>(ranks), layout.stage_bytes);
  }
}

}  // namespace
}  // namespace dtrun::shm

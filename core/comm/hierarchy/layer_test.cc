#include "core/comm/hierarchy/layer.h"

#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

TEST(Layer, RenumbersTheRanksOfATextAndNothingElse) {
  const std::vector<int> ranks = {4, 7, 11};
  EXPECT_EQ(Renumbered("rank 1 is missing, rank 2 waits for 1 s", ranks),
            "rank 7 is missing, rank 11 waits for 1 s");
  EXPECT_EQ(Renumbered("ranks 0, 1 and 2 of 3 did not join", ranks), "ranks 4, 7 and 11 of 3 did not join");
  EXPECT_EQ(Renumbered("ranks 0, 1 and 2 more of 9", ranks), "ranks 4, 7 and 2 more of 9");
  EXPECT_EQ(Renumbered("rank 1 (10.0.0.5, pid 4242)", ranks), "rank 7 (10.0.0.5, pid 4242)");
}

TEST(Layer, LeavesANumberThatIsNoRankOfItAlone) {
  EXPECT_EQ(Renumbered("rank 9, ranking 1, the rank", {4, 7}), "rank 9, ranking 1, the rank");
  EXPECT_EQ(Renumbered("rank 1", {4, 7}), "rank 7");
  EXPECT_EQ(Renumbered("rank", {4}), "rank");
  EXPECT_EQ(Renumbered("", {4}), "");
}

}  // namespace
}  // namespace dtrun::comm

#include "core/comm/call.h"

#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

dtrun_op OpOf(std::int32_t kind) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_FLOAT32;
  op.reduce = DTRUN_SUM;
  op.root = 1;
  op.count = 8;
  return op;
}

TEST(Call, HasWhatRanksMustAgreeOn) {
  EXPECT_EQ(CallText(CallOf(OpOf(DTRUN_ALLREDUCE), 2)), "allreduce (float32 x 8, sum)");
  EXPECT_EQ(CallText(CallOf(OpOf(DTRUN_BROADCAST), 2)), "broadcast (float32 x 8, root 1)");
  EXPECT_EQ(CallText(CallOf(OpOf(DTRUN_REDUCE), 2)), "reduce (float32 x 8, sum, root 1)");
  EXPECT_EQ(CallText(CallOf(OpOf(DTRUN_BARRIER), 2)), "barrier");
}

TEST(Call, LeavesOutWhatMayDiffer) {
  dtrun_op one = OpOf(DTRUN_GATHERV), other = OpOf(DTRUN_GATHERV);
  other.count = 99;
  EXPECT_EQ(CallOf(one, 2), CallOf(other, 2));
}

TEST(Call, ComparesCountsThatAllRanksGive) {
  const std::uint64_t counts[] = {1, 2}, others[] = {2, 1};
  dtrun_op one = OpOf(DTRUN_ALLGATHERV), same = OpOf(DTRUN_ALLGATHERV), other = OpOf(DTRUN_ALLGATHERV);
  one.recv_counts = same.recv_counts = counts;
  other.recv_counts = others;
  same.count = 77;  // this rank's own
  EXPECT_EQ(CallOf(one, 2), CallOf(same, 2));
  EXPECT_NE(CallOf(one, 2), CallOf(other, 2));
}

}  // namespace
}  // namespace dtrun::comm

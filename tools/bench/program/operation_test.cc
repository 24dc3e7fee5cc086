#include "tools/bench/program/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Operation, NamesLeadBackToOperations) {
  for (int i = 0; i <= static_cast<int>(Operation::kBarrier); ++i) {
    const auto operation = static_cast<Operation>(i);
    EXPECT_EQ(*ParseOperation(OperationName(operation)), operation);
    EXPECT_THAT(OperationNames(), HasSubstr(OperationName(operation)));
  }
}

TEST(Operation, AnUnknownOneHasItsNearest) {
  EXPECT_THAT(ParseOperation("allredcue").error().text,
              AllOf(HasSubstr("'allredcue'"), HasSubstr("'allreduce'")));
  EXPECT_FALSE(ParseOperation("memcpy").ok());
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(Operation, BusBandwidthFollowsNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kAllreduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kAllgather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kAlltoall, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kSendrecv, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Operation::kAllreduce, 1), 0);
}

TEST(Operation, ASizeIsTheWholeVector) {
  const Shape reduced = ShapeOf(Operation::kAllreduce, 4, 1024, 4);
  EXPECT_EQ(reduced.count, 256u);
  EXPECT_EQ(reduced.bytes, 1024u);
  const Shape gathered = ShapeOf(Operation::kAllgather, 4, 1024, 4);
  EXPECT_EQ(gathered.count, 64u);
  EXPECT_EQ(gathered.send, 64u);
  EXPECT_EQ(gathered.recv, 256u);
  EXPECT_EQ(gathered.bytes, 1024u);
  const Shape scattered = ShapeOf(Operation::kReduceScatter, 4, 1024, 4);
  EXPECT_EQ(scattered.send, 256u);
  EXPECT_EQ(scattered.recv, 64u);
  const Shape exchanged = ShapeOf(Operation::kAlltoall, 4, 1024, 4);
  EXPECT_EQ(exchanged.send, 256u);
  EXPECT_EQ(exchanged.recv, 256u);
}

TEST(Operation, ASizeThatDoesNotDivideIsRoundedDownButNeverToNothing) {
  EXPECT_EQ(ShapeOf(Operation::kAllgather, 3, 40, 4).bytes, 36u);
  EXPECT_EQ(ShapeOf(Operation::kAllgather, 4, 8, 4).bytes, 16u);
  EXPECT_EQ(ShapeOf(Operation::kAllreduce, 4, 1, 8).bytes, 8u);
  EXPECT_EQ(ShapeOf(Operation::kBarrier, 4, 1024, 4).bytes, 0u);
}

}  // namespace
}  // namespace dtrun::bench

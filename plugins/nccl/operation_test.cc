#include "operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace dtrun::nccl_plugin {
namespace {

using ::testing::HasSubstr;

const std::string kWorld = "world";
const Site kSite{kWorld, 1, 3};

dtrun_op Op(std::int32_t kind) {
  static char memory[64];
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_INT32;
  op.reduce = DTRUN_SUM;
  op.count = 2;
  op.sequence = 9;
  op.send = memory;
  op.recv = memory;
  return op;
}

// "" when it is accepted.
std::string Refusal(const dtrun_op& op) {
  try {
    ReadOperation(op, kSite);
    return "";
  } catch (const sdk::Failure& failure) {
    return failure.what();
  }
}

TEST(Operation, IsNamedByKindAndNumberOrPeer) {
  EXPECT_EQ(ReadOperation(Op(DTRUN_REDUCE_SCATTER), kSite).text, "reduce_scatter 9");
  dtrun_op op = Op(DTRUN_RECV);
  op.peer = 2;
  EXPECT_EQ(ReadOperation(op, kSite).text, "recv from rank 2");
}

TEST(Operation, OfEqualPartsHasThemOneBehindTheOther) {
  const Operation operation = ReadOperation(Op(DTRUN_ALLTOALL), kSite);
  ASSERT_EQ(operation.send_parts.size(), 3u);
  EXPECT_EQ(operation.send_parts[2].offset, 4u);
  EXPECT_EQ(operation.recv_parts[2].count, 2u);
}

TEST(Operation, ThatIsUnevenKeepsCountsAndOffsets) {
  const std::uint64_t counts[] = {1, 0, 2};
  const std::uint64_t offsets[] = {5, 0, 1};
  dtrun_op op = Op(DTRUN_ALLGATHERV);
  op.recv_counts = counts;
  EXPECT_EQ(ReadOperation(op, kSite).recv_parts[2].offset, 1u);
  op.recv_offsets = offsets;
  EXPECT_EQ(ReadOperation(op, kSite).recv_parts[0].offset, 5u);
  op.recv_counts = nullptr;
  EXPECT_THAT(Refusal(op), HasSubstr("recv counts are missing"));
}

TEST(Operation, NeedsBuffersOnlyWhereItUsesThem) {
  dtrun_op op = Op(DTRUN_REDUCE);
  op.root = 0;
  op.recv = nullptr;  // this rank is not the root
  EXPECT_EQ(Refusal(op), "");
  op.root = 1;
  EXPECT_THAT(Refusal(op), HasSubstr("the recv buffer is null"));
  op = Op(DTRUN_SCATTER);
  op.root = 0;
  op.send = nullptr;
  EXPECT_EQ(Refusal(op), "");
  op = Op(DTRUN_ALLREDUCE);
  op.count = 0;
  op.send = op.recv = nullptr;
  EXPECT_EQ(Refusal(op), "");
}

TEST(Operation, OfAbsurdSizeOrRootIsRefused) {
  dtrun_op op = Op(DTRUN_ALLGATHER);
  op.count = std::numeric_limits<std::uint64_t>::max() / 16;
  EXPECT_THAT(Refusal(op), HasSubstr("do not fit the address space"));
  const std::uint64_t huge[] = {std::numeric_limits<std::uint64_t>::max() / 8 - 1, 1, 1};
  op = Op(DTRUN_ALLGATHERV);
  op.recv_counts = huge;
  EXPECT_THAT(Refusal(op), HasSubstr("do not fit the address space"));
  op = Op(DTRUN_GATHER);
  op.root = -1;
  EXPECT_THAT(Refusal(op), HasSubstr("no rank -1 to be the root; 'world' has 3 ranks"));
}

}  // namespace
}  // namespace dtrun::nccl_plugin

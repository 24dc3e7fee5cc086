#include "core/comm/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "dtrun/plugin/names.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {
namespace {

dtrun_op Op(std::int32_t kind, std::uint64_t count = 2) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_FLOAT32;
  op.reduce = DTRUN_SUM;
  op.root = 0;
  op.peer = 2;
  op.count = count;
  return op;
}

TEST(OperationWords, DescribeAnOperationByItsNumberPlaceAndElements) {
  dtrun_op op = Op(DTRUN_ALLREDUCE, 1024);
  op.sequence = 17;
  EXPECT_EQ(Describe(op, "world"), "allreduce #17 on 'world' (float32 x 1024, sum)");
  op = Op(DTRUN_BROADCAST);
  op.sequence = 2;
  EXPECT_EQ(Describe(op, "world"), "broadcast #2 on 'world' (float32 x 2, root 0)");
  op = Op(DTRUN_BARRIER, 0);
  op.sequence = 3;
  EXPECT_EQ(Describe(op, "world"), "barrier #3 on 'world'");
  op = Op(DTRUN_RECV);
  op.tag = 5;
  EXPECT_EQ(Describe(op, "world"), "recv from rank 2 on 'world' (float32 x 2, tag 5)");
  op.peer = DTRUN_ANY_SOURCE;
  EXPECT_EQ(Describe(op, "world"), "recv from any rank on 'world' (float32 x 2, tag 5)");
  op = Op(DTRUN_REDUCE);
  op.sequence = 1;
  op.dtype = DTRUN_COMPLEX64;
  op.reduce = DTRUN_PREMUL_SUM;
  EXPECT_EQ(Describe(op, "world.1:0"), "reduce #1 on 'world.1:0' (complex64 x 2, premul_sum, root 0)");
  op = Op(DTRUN_ALLTOALLV);
  op.sequence = 1;
  EXPECT_EQ(Describe(op, "world"), "alltoallv #1 on 'world' (float32 x 2)");
}

TEST(OperationWords, NameEveryKindTypeAndReductionOnce) {
  std::set<std::string> names;
  std::size_t count = 0;
  const auto add = [&](const std::string& name) {
    EXPECT_EQ(name.find("unknown"), std::string::npos) << name;
    names.insert(name);
    ++count;
  };
  for (std::int32_t kind = 1; kind < sdk::kOperationEnd; ++kind) add(sdk::OperationName(kind));
  for (std::int32_t dtype = 1; dtype < sdk::kTypeEnd; ++dtype) add(sdk::TypeName(dtype));
  for (std::int32_t reduce = 1; reduce < sdk::kReductionEnd; ++reduce) add(sdk::ReductionName(reduce));
  EXPECT_EQ(names.size(), count);
  for (const std::int32_t bad : {-1, 0, 1000}) {
    EXPECT_STREQ(sdk::OperationName(bad), "unknown operation");
    EXPECT_STREQ(sdk::TypeName(bad), "unknown type");
    EXPECT_STREQ(sdk::ReductionName(bad), "unknown reduction");
  }
}

TEST(OperationWords, KnowTheSizeOfEveryType) {
  const std::uint64_t sizes[sdk::kTypeEnd] = {0, 2, 2, 4, 8, 4, 8, 1, 1, 2, 2, 4, 8, 1, 8, 16};
  for (std::int32_t dtype = 0; dtype < sdk::kTypeEnd; ++dtype) EXPECT_EQ(DtypeSize(dtype), sizes[dtype]);
  EXPECT_EQ(DtypeSize(sdk::kTypeEnd), 0u);
  EXPECT_EQ(DtypeSize(-1), 0u);
}

class OperationParts : public ::testing::Test {
 protected:
  OperationParts() {
    scope_.rank = 1;
    scope_.size = 3;
  }
  Scope scope_;
  const std::uint64_t counts_[3] = {2, 0, 5}, none_[3] = {0, 0, 0};
};

TEST_F(OperationParts, AreCountedWhereCountsStandInThePlaceOfACount) {
  dtrun_op op = Op(DTRUN_ALLGATHERV, 0);
  op.recv_counts = counts_;
  EXPECT_EQ(Elements(op, scope_), 7u);
  op.kind = DTRUN_ALLTOALLV;
  op.send_counts = none_;
  EXPECT_EQ(Elements(op, scope_), 0u);
  EXPECT_EQ(Elements(Op(DTRUN_GATHERV, 4), scope_), 4u);
}

TEST_F(OperationParts, MoveNothingOnlyWhereEveryRankKnowsIt) {
  EXPECT_FALSE(Moves(Op(DTRUN_ALLREDUCE, 0), scope_));
  EXPECT_FALSE(Moves(Op(DTRUN_SEND, 0), scope_));
  EXPECT_TRUE(Moves(Op(DTRUN_BARRIER, 0), scope_));
  dtrun_op op = Op(DTRUN_REDUCE_SCATTERV, 0);
  op.recv_counts = none_;
  EXPECT_FALSE(Moves(op, scope_));
  op.recv_counts = counts_;
  EXPECT_TRUE(Moves(op, scope_));
  EXPECT_TRUE(Moves(Op(DTRUN_GATHERV, 0), scope_)) << "another rank may have elements";
}

TEST_F(OperationParts, LeaveNoMemberThatTheKindDoesNotUse) {
  float buffer[8];
  dtrun_op op = Op(DTRUN_GATHERV);
  op.root = 2;
  op.send = buffer;
  op.recv = buffer;
  op.recv_counts = op.recv_offsets = op.send_counts = counts_;
  op.tag = 7;
  op.scale = 3;
  ClearUnused(op, scope_);
  EXPECT_EQ(op.recv, nullptr);
  EXPECT_EQ(op.recv_counts, nullptr);
  EXPECT_EQ(op.recv_offsets, nullptr);
  EXPECT_EQ(op.send_counts, nullptr);
  EXPECT_EQ(op.send, buffer);
  EXPECT_EQ(op.reduce, 0);
  EXPECT_EQ(op.peer, -1);
  EXPECT_EQ(op.tag, 0u);
  EXPECT_EQ(op.scale, 0);

  op.kind = DTRUN_REDUCE_SCATTERV;
  op.reduce = DTRUN_PREMUL_SUM;
  op.recv_counts = counts_;
  op.scale = 3;
  ClearUnused(op, scope_);
  EXPECT_EQ(op.recv_counts, counts_) << "its send buffer has parts of these counts";
  EXPECT_EQ(op.root, -1);
  EXPECT_EQ(op.scale, 3);
}

}  // namespace
}  // namespace dtrun::comm

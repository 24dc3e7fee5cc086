#include "core/comm/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

using ::testing::HasSubstr;

class Operation : public ::testing::Test {
 protected:
  Operation() {
    scope_.comm = "world";
    scope_.backend = "x";
    scope_.rank = 1;
    scope_.size = 4;
    scope_.caps.ops = scope_.caps.dtypes = scope_.caps.reduces = ~std::uint64_t{0};
  }

  dtrun_op Op(std::int32_t kind, const void* send, void* recv, std::uint64_t count = 2) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = DTRUN_FLOAT32;
    op.reduce = DTRUN_SUM;
    op.root = kind == DTRUN_BROADCAST ? 0 : -1;
    op.peer = IsCollective(kind) ? -1 : 2;
    op.send = send;
    op.recv = recv;
    op.count = count;
    return op;
  }
  dtrun_op Allreduce(std::uint64_t count = 2) { return Op(DTRUN_ALLREDUCE, a_, b_, count); }

  void ExpectRefused(const dtrun_op& op, dtrun_status code, const std::string& text) {
    const Status status = Check(op, scope_);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.error().code, code);
    EXPECT_THAT(status.error().text, HasSubstr(text));
  }

  Scope scope_;
  float a_[64] = {}, b_[64] = {};
};

TEST_F(Operation, IsDescribedByItsNumberPlaceAndElements) {
  dtrun_op op = Allreduce(1024);
  op.sequence = 17;
  EXPECT_EQ(Describe(op, "world"), "allreduce #17 on 'world' (float32 x 1024, sum)");
  op = Op(DTRUN_BROADCAST, nullptr, b_);
  op.sequence = 2;
  EXPECT_EQ(Describe(op, "world"), "broadcast #2 on 'world' (float32 x 2, root 0)");
  op = Op(DTRUN_BARRIER, nullptr, nullptr, 0);
  op.sequence = 3;
  EXPECT_EQ(Describe(op, "world"), "barrier #3 on 'world'");
  op = Op(DTRUN_RECV, nullptr, b_);
  op.tag = 5;
  EXPECT_EQ(Describe(op, "world"), "recv from rank 2 on 'world' (float32 x 2, tag 5)");
}

TEST_F(Operation, KnowsTheSizeOfEveryType) {
  const std::uint64_t sizes[] = {0, 2, 2, 4, 8, 4, 8, 1};
  for (std::int32_t dtype = 0; dtype < DTRUN_DTYPE_COUNT; ++dtype) EXPECT_EQ(DtypeSize(dtype), sizes[dtype]);
  EXPECT_EQ(DtypeSize(DTRUN_DTYPE_COUNT), 0u);
  EXPECT_EQ(DtypeSize(-1), 0u);
}

TEST_F(Operation, IsAcceptedInEveryDocumentedForm) {
  for (const dtrun_op& op :
       {Allreduce(), Op(DTRUN_ALLREDUCE, a_, a_), Op(DTRUN_BROADCAST, nullptr, b_),
        Op(DTRUN_ALLGATHER, a_, b_), Op(DTRUN_ALLGATHER, b_ + 2, b_), Op(DTRUN_REDUCE_SCATTER, a_, b_),
        Op(DTRUN_REDUCE_SCATTER, a_, a_ + 2), Op(DTRUN_BARRIER, nullptr, nullptr, 0),
        Op(DTRUN_SEND, a_, nullptr), Op(DTRUN_RECV, nullptr, b_), Op(DTRUN_ALLREDUCE, nullptr, nullptr, 0)}) {
    const Status status = Check(op, scope_);
    EXPECT_TRUE(status.ok()) << KindText(op.kind) << ": " << (status.ok() ? "" : status.error().text);
  }
}

TEST_F(Operation, IsRefusedWithNullBuffers) {
  ExpectRefused(Op(DTRUN_ALLREDUCE, nullptr, b_), DTRUN_INVALID_ARGUMENT, "send buffer is null");
  ExpectRefused(Op(DTRUN_ALLREDUCE, a_, nullptr), DTRUN_INVALID_ARGUMENT, "recv buffer is null");
}

TEST_F(Operation, IsRefusedWithUnknownTypesAndReductions) {
  for (const std::int32_t bad : {-1, 0, static_cast<int>(DTRUN_DTYPE_COUNT), 1000}) {
    dtrun_op op = Allreduce();
    op.dtype = bad;
    ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "unknown element type " + std::to_string(bad));
    op = Allreduce();
    op.reduce = bad;
    if (bad != DTRUN_DTYPE_COUNT) ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "unknown reduction");
  }
}

TEST_F(Operation, IsUnsupportedAsAnAverageOfIntegers) {
  dtrun_op op = Allreduce();
  op.reduce = DTRUN_AVG;
  EXPECT_TRUE(Check(op, scope_).ok());
  for (const std::int32_t dtype : {DTRUN_INT32, DTRUN_INT64, DTRUN_UINT8}) {
    op.dtype = dtype;
    ExpectRefused(op, DTRUN_UNSUPPORTED, "avg of ");
  }
}

TEST_F(Operation, IsRefusedWithMisalignedBuffers) {
  const void* odd = reinterpret_cast<const char*>(a_) + 2;
  ExpectRefused(Op(DTRUN_ALLREDUCE, odd, b_), DTRUN_INVALID_ARGUMENT,
                "not aligned to the 4 bytes of float32");
}

TEST_F(Operation, IsRefusedWhenItsSizeOverflows) {
  ExpectRefused(Allreduce(UINT64_MAX / 2), DTRUN_INVALID_ARGUMENT, "do not fit into memory");
  ExpectRefused(Op(DTRUN_ALLGATHER, a_, b_, UINT64_MAX / 8), DTRUN_INVALID_ARGUMENT,
                "do not fit into memory");
}

TEST_F(Operation, IsRefusedForRanksOutsideTheWorldAndItself) {
  for (const int bad : {-1, 4}) {
    dtrun_op op = Op(DTRUN_BROADCAST, nullptr, b_);
    op.root = bad;
    ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "root " + std::to_string(bad) + " is outside 'world'");
    op = Op(DTRUN_SEND, a_, nullptr);
    op.peer = bad;
    ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "peer " + std::to_string(bad) + " is outside 'world'");
  }
  dtrun_op op = Op(DTRUN_RECV, nullptr, b_);
  op.peer = 1;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "this rank itself");
}

TEST_F(Operation, IsRefusedWhenBuffersOverlapInAnyOtherWay) {
  ExpectRefused(Op(DTRUN_ALLREDUCE, a_, a_ + 1), DTRUN_INVALID_ARGUMENT, "send == recv");
  ExpectRefused(Op(DTRUN_ALLGATHER, b_, b_), DTRUN_INVALID_ARGUMENT, "overlap");
  ExpectRefused(Op(DTRUN_REDUCE_SCATTER, a_, a_ + 4), DTRUN_INVALID_ARGUMENT, "overlap");
  EXPECT_TRUE(Check(Op(DTRUN_ALLREDUCE, a_, a_ + 2), scope_).ok());
}

TEST_F(Operation, IsUnsupportedWhereTheBackendSaysSo) {
  dtrun_op op = Op(DTRUN_REDUCE_SCATTER, a_, b_);
  op.dtype = DTRUN_INT32;
  op.reduce = DTRUN_PROD;
  const char* text = "backend 'x' does not support reduce_scatter of int32 with prod";
  const dtrun_backend_caps all = scope_.caps;
  scope_.caps.reduces = 1u << DTRUN_SUM;
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  scope_.caps = all;
  scope_.caps.dtypes = 1u << DTRUN_FLOAT32;
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  scope_.caps = all;
  scope_.caps.ops = 1u << DTRUN_ALLREDUCE;
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  ExpectRefused(Op(DTRUN_BARRIER, nullptr, nullptr, 0), DTRUN_UNSUPPORTED, "does not support barrier");
}

TEST_F(Operation, IsRefusedBeyondTheLargestBufferOfTheBackend) {
  scope_.caps.max_bytes = 32;
  EXPECT_TRUE(Check(Op(DTRUN_ALLGATHER, a_, b_, 2), scope_).ok());
  ExpectRefused(Op(DTRUN_ALLGATHER, a_, b_, 3), DTRUN_INVALID_ARGUMENT, "48 bytes");
}

}  // namespace
}  // namespace dtrun::comm

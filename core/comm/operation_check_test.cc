// Also tests extent.cc: its two functions are the middle of the check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comm/extent.h"
#include "core/comm/operation.h"

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
    scope_.caps.ops = scope_.caps.dtypes = scope_.caps.reduce_dtypes = scope_.caps.reduces =
        ~std::uint64_t{0};
  }

  dtrun_op Op(std::int32_t kind, const void* send, void* recv, std::uint64_t count = 2) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = DTRUN_FLOAT32;
    op.reduce = DTRUN_SUM;
    op.root = sdk::IsRooted(kind) ? 0 : -1;
    op.peer = sdk::IsCollective(kind) ? -1 : 2;
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

TEST_F(Operation, IsAcceptedInEveryDocumentedForm) {
  for (const dtrun_op& op :
       {Allreduce(), Op(DTRUN_ALLREDUCE, a_, a_), Op(DTRUN_BROADCAST, nullptr, b_),
        Op(DTRUN_ALLGATHER, a_, b_), Op(DTRUN_ALLGATHER, b_ + 2, b_), Op(DTRUN_REDUCE_SCATTER, a_, b_),
        Op(DTRUN_REDUCE_SCATTER, a_, a_ + 2), Op(DTRUN_BARRIER, nullptr, nullptr, 0),
        Op(DTRUN_SEND, a_, nullptr), Op(DTRUN_RECV, nullptr, b_), Op(DTRUN_ALLREDUCE, nullptr, nullptr, 0)}) {
    const Status status = Check(op, scope_);
    EXPECT_TRUE(status.ok()) << sdk::OperationName(op.kind) << ": "
                             << (status.ok() ? "" : status.error().text);
  }
}

TEST_F(Operation, IsRefusedWithNullBuffers) {
  ExpectRefused(Op(DTRUN_ALLREDUCE, nullptr, b_), DTRUN_INVALID_ARGUMENT, "send buffer is null");
  ExpectRefused(Op(DTRUN_ALLREDUCE, a_, nullptr), DTRUN_INVALID_ARGUMENT, "recv buffer is null");
}

TEST_F(Operation, IsRefusedWithUnknownTypesAndReductions) {
  for (const std::int32_t bad : {-1, 0, static_cast<int>(sdk::kTypeEnd), 1000}) {
    dtrun_op op = Allreduce();
    op.dtype = bad;
    ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "unknown element type " + std::to_string(bad));
    op = Allreduce();
    op.reduce = bad;
    if (bad != sdk::kTypeEnd) ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "unknown reduction");
  }
}

TEST_F(Operation, IsUnsupportedWhereTypeAndReductionHaveNoMeaningAndSaysWhatHas) {
  struct Pair {
    std::int32_t dtype, reduce;
    const char* text;
  };
  for (const Pair& pair :
       {Pair{DTRUN_INT32, DTRUN_AVG, "avg of int32: it has no exact result; use sum and divide"},
        Pair{DTRUN_UINT8, DTRUN_PREMUL_SUM, "premul_sum of uint8"},
        Pair{DTRUN_BOOL, DTRUN_AVG, "avg of bool: use land or lor"},
        Pair{DTRUN_COMPLEX64, DTRUN_MAX, "max of complex64: complex numbers have no order"},
        Pair{DTRUN_COMPLEX128, DTRUN_BAND, "bits of complex numbers"},
        Pair{DTRUN_COMPLEX128, DTRUN_LOR, "compare the elements with zero"},
        Pair{DTRUN_BFLOAT16, DTRUN_BXOR, "bits of floating numbers"}}) {
    dtrun_op op = Allreduce();
    op.dtype = pair.dtype;
    op.reduce = pair.reduce;
    ExpectRefused(op, DTRUN_UNSUPPORTED, pair.text);
  }
}

TEST_F(Operation, IsAcceptedForExactlyThePairsOfTheTable) {
  int accepted = 0;
  for (std::int32_t dtype = 1; dtype < sdk::kTypeEnd; ++dtype) {
    for (std::int32_t reduce = 1; reduce < sdk::kReductionEnd; ++reduce) {
      dtrun_op op = Allreduce();
      op.dtype = dtype;
      op.reduce = reduce;
      accepted += Check(op, scope_).ok() ? 1 : 0;
    }
  }
  // From the table in abi/types.h: 4 floating types x 6, 8 integers x 9, bool x 9, 2 complex x 4.
  EXPECT_EQ(accepted, 4 * 6 + 8 * 9 + 9 + 2 * 4);
}

TEST_F(Operation, IsRefusedWithMisalignedBuffers) {
  const void* odd = reinterpret_cast<const char*>(a_) + 2;
  ExpectRefused(Op(DTRUN_ALLREDUCE, odd, b_), DTRUN_INVALID_ARGUMENT,
                "not aligned to the 4 bytes of float32");
}

TEST_F(Operation, TakesComplexNumbersAlignedAsOnePart) {
  dtrun_op op = Op(DTRUN_ALLREDUCE, a_ + 1, b_ + 1);
  op.dtype = DTRUN_COMPLEX64;
  EXPECT_TRUE(Check(op, scope_).ok());
  op.send = reinterpret_cast<const char*>(a_) + 2;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "not aligned to the 4 bytes of complex64");
}

TEST_F(Operation, IsRefusedWhenItsSizeOverflows) {
  ExpectRefused(Allreduce(UINT64_MAX / 2), DTRUN_INVALID_ARGUMENT, "do not fit into memory");
  ExpectRefused(Op(DTRUN_ALLGATHER, a_, b_, UINT64_MAX / 8), DTRUN_INVALID_ARGUMENT,
                "do not fit into memory");
}

TEST_F(Operation, ShowsACountThatWasNegative) {
  ExpectRefused(Allreduce(static_cast<std::uint64_t>(-3)), DTRUN_INVALID_ARGUMENT,
                "18446744073709551613 (-3 as a signed number) elements of float32");
}

TEST_F(Operation, IsAcceptedBeyondTwoToThe31Elements) {
  const std::uint64_t many = (std::uint64_t{1} << 32) + 1;
  alignas(64) static char place;
  EXPECT_TRUE(Check(Op(DTRUN_ALLREDUCE, &place, &place, many), scope_).ok());
}

TEST_F(Operation, OfAnUnknownKindIsRefused) {
  for (const std::int32_t bad : {-1, 0, static_cast<int>(sdk::kOperationEnd), 1000}) {
    ExpectRefused(Op(bad, a_, b_), DTRUN_INVALID_ARGUMENT, "unknown operation " + std::to_string(bad));
  }
}

TEST_F(Operation, NeedsBuffersOnlyWhereTheRankUsesThem) {
  // This is rank 1; the root is 0.
  EXPECT_TRUE(Check(Op(DTRUN_REDUCE, a_, nullptr), scope_).ok());
  EXPECT_TRUE(Check(Op(DTRUN_GATHER, a_, nullptr), scope_).ok());
  EXPECT_TRUE(Check(Op(DTRUN_GATHERV, a_, nullptr), scope_).ok());
  EXPECT_TRUE(Check(Op(DTRUN_SCATTER, nullptr, b_), scope_).ok());
  EXPECT_TRUE(Check(Op(DTRUN_SCATTERV, nullptr, b_), scope_).ok());
  for (const std::int32_t kind : {DTRUN_REDUCE, DTRUN_GATHER, DTRUN_SCATTER}) {
    dtrun_op op = Op(kind, kind == DTRUN_SCATTER ? nullptr : a_, kind == DTRUN_SCATTER ? b_ : nullptr);
    op.root = 1;
    ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "buffer is null");
  }
}

TEST_F(Operation, FromAnySourceNeedsABackendThatCan) {
  dtrun_op op = Op(DTRUN_RECV, nullptr, b_);
  op.peer = DTRUN_ANY_SOURCE;
  ExpectRefused(op, DTRUN_UNSUPPORTED, "backend 'x' cannot receive from any rank; name the peer");
  scope_.caps.features = DTRUN_CAP_ANY_SOURCE;
  EXPECT_TRUE(Check(op, scope_).ok());
  op.count = 0;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "without elements no message is sent");
  op = Op(DTRUN_SEND, a_, nullptr);
  op.peer = DTRUN_ANY_SOURCE;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "peer -1 is outside 'world'");
}

TEST_F(Operation, IsRefusedForRanksOutsideTheWorldAndItself) {
  for (const int bad : {-1, 4}) {
    dtrun_op op;
    for (const std::int32_t kind :
         {DTRUN_BROADCAST, DTRUN_REDUCE, DTRUN_GATHER, DTRUN_SCATTER, DTRUN_GATHERV, DTRUN_SCATTERV}) {
      op = Op(kind, a_, b_);
      op.root = bad;
      ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "root " + std::to_string(bad) + " is outside 'world'");
    }
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
  scope_.caps.reduce_dtypes = 1u << DTRUN_FLOAT32;
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  EXPECT_TRUE(Check(Op(DTRUN_BROADCAST, nullptr, b_), scope_).ok()) << "it is moved all the same";
  scope_.caps = all;
  scope_.query_support = [](dtrun_instance*, const dtrun_support_query* query, dtrun_error*) -> dtrun_status {
    const bool excluded = query->dtype == DTRUN_INT32 && query->reduce == DTRUN_PROD;
    return excluded && query->kind == DTRUN_REDUCE_SCATTER ? DTRUN_UNSUPPORTED : DTRUN_OK;
  };
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  op.reduce = DTRUN_SUM;
  EXPECT_TRUE(Check(op, scope_).ok());
  op.reduce = DTRUN_PROD;
  scope_.query_support = [](dtrun_instance*, const dtrun_support_query*, dtrun_error* err) {
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "its library has no product");
  };
  ExpectRefused(op, DTRUN_UNSUPPORTED,
                "reduce_scatter of int32 with prod: its library has no product; choose another");
  scope_.query_support = [](dtrun_instance*, const dtrun_support_query*, dtrun_error* err) {
    return dtrun_error_set(err, DTRUN_VENDOR, -1, "its library is lost");
  };
  ExpectRefused(op, DTRUN_VENDOR, "backend 'x', in query_support: its library is lost");
  scope_.query_support = nullptr;
  scope_.caps.ops = 1u << DTRUN_ALLREDUCE;
  ExpectRefused(op, DTRUN_UNSUPPORTED, text);
  ExpectRefused(Op(DTRUN_BARRIER, nullptr, nullptr, 0), DTRUN_UNSUPPORTED, "does not support barrier");
}

TEST_F(Operation, IsRefusedBeyondTheLargestBufferOfTheBackend) {
  scope_.caps.max_bytes = 32;
  EXPECT_TRUE(Check(Op(DTRUN_ALLGATHER, a_, b_, 2), scope_).ok());
  ExpectRefused(Op(DTRUN_ALLGATHER, a_, b_, 3), DTRUN_INVALID_ARGUMENT, "48 bytes");
}

class OperationWithParts : public Operation {
 protected:
  dtrun_op Allgatherv() {
    dtrun_op op = Op(DTRUN_ALLGATHERV, a_, b_, 0);
    op.recv_counts = counts_;
    return op;
  }
  dtrun_op Alltoallv() {
    dtrun_op op = Op(DTRUN_ALLTOALLV, a_, b_, 0);
    op.send_counts = op.recv_counts = counts_;
    return op;
  }
  bool Accepts(const dtrun_op& op) { return Check(op, scope_).ok(); }

  std::uint64_t counts_[4] = {3, 2, 0, 4};
};

TEST_F(OperationWithParts, NeedsTheArraysOfItsKind) {
  EXPECT_TRUE(Accepts(Allgatherv()));
  EXPECT_TRUE(Accepts(Alltoallv()));
  dtrun_op op = Allgatherv();
  op.recv_counts = nullptr;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "recv_counts is null; it has a count for each of the 4 ranks");
  op = Alltoallv();
  op.send_counts = nullptr;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "alltoallv: send_counts is null");
  op = Op(DTRUN_REDUCE_SCATTERV, a_, b_, 0);
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "reduce_scatterv: recv_counts is null");
  op = Op(DTRUN_SCATTERV, a_, b_);
  op.root = 1;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "scatterv: send_counts is null");
}

TEST_F(OperationWithParts, IsRefusedWhenCountsOrOffsetsOverflow) {
  counts_[2] = UINT64_MAX - 1;
  ExpectRefused(Allgatherv(), DTRUN_INVALID_ARGUMENT, "(-2 as a signed number) elements");
  ExpectRefused(Alltoallv(), DTRUN_INVALID_ARGUMENT, "do not fit into memory");
  counts_[2] = 0;
  const std::uint64_t offsets[4] = {0, 3, 5, UINT64_MAX - 2};
  dtrun_op op = Allgatherv();
  op.recv_offsets = offsets;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "recv_offsets[3] is 18446744073709551613, behind which");
}

TEST_F(OperationWithParts, NeedsBuffersOnlyForPartsThatHaveElements) {
  counts_[1] = 0;
  dtrun_op op = Allgatherv();
  op.send = nullptr;
  EXPECT_TRUE(Accepts(op)) << "this rank sends nothing";
  op.recv = nullptr;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "the recv buffer is null, and has 7 elements");
}

TEST_F(OperationWithParts, MayLieInAnyOrderButNotOverEachOtherInRecv) {
  const std::uint64_t apart[4] = {20, 0, 0, 8}, touching[4] = {4, 2, 4, 7}, over[4] = {20, 0, 0, 19};
  for (const std::uint64_t* offsets : {apart, touching}) {
    dtrun_op op = Alltoallv();
    op.recv_offsets = offsets;
    EXPECT_TRUE(Accepts(op));
  }
  dtrun_op op = Alltoallv();
  op.recv_offsets = over;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT,
                "the parts of ranks 3 and 0 overlap in recv: 4 elements at 19, and 3 at 20");
  op = Alltoallv();
  op.send_offsets = over;
  EXPECT_TRUE(Accepts(op)) << "what is only read may be sent twice";
}

TEST_F(OperationWithParts, MeasuresBuffersToTheEndOfTheirLastPart) {
  const std::uint64_t offsets[4] = {20, 0, 0, 8};
  dtrun_op op = Alltoallv();
  op.recv_offsets = offsets;
  Extent extent;
  ASSERT_TRUE(Measure(op, scope_, extent).ok());
  EXPECT_EQ(extent.send, 9 * sizeof(float));
  EXPECT_EQ(extent.recv, 23 * sizeof(float));
}

TEST_F(OperationWithParts, AgreesWithItselfOnItsOwnPart) {
  const std::uint64_t other[4] = {3, 1, 0, 4};
  dtrun_op op = Alltoallv();
  op.recv_counts = other;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "rank 1 sends 2 elements to itself and receives 1");
  op = Op(DTRUN_GATHERV, a_, b_, 3);
  op.root = 1;
  op.recv_counts = counts_;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "rank 1 sends 3 elements to itself and receives 2");
  op = Op(DTRUN_SCATTERV, a_, b_, 3);
  op.root = 1;
  op.send_counts = counts_;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "rank 1 sends 2 elements to itself and receives 3");
}

TEST_F(OperationWithParts, IsAcceptedInPlaceAtItsOwnPart) {
  dtrun_op op = Allgatherv();
  op.send = b_ + 3;
  EXPECT_TRUE(Accepts(op));
  op.send = b_ + 2;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "the only overlap allowed is send at this rank's part of recv");
  const std::uint64_t offsets[4] = {20, 6, 0, 8};
  op = Allgatherv();
  op.recv_offsets = offsets;
  op.send = b_ + 6;
  EXPECT_TRUE(Accepts(op));
  op = Op(DTRUN_REDUCE_SCATTERV, a_, a_ + 3, 0);
  op.recv_counts = counts_;
  EXPECT_TRUE(Accepts(op));
  for (const std::int32_t kind : {DTRUN_GATHER, DTRUN_GATHERV}) {
    op = Op(kind, b_ + (kind == DTRUN_GATHER ? 2 : 3), b_);
    op.root = 1;
    op.recv_counts = counts_;
    EXPECT_TRUE(Accepts(op)) << sdk::OperationName(kind);
  }
  for (const std::int32_t kind : {DTRUN_SCATTER, DTRUN_SCATTERV}) {
    op = Op(kind, a_, a_ + (kind == DTRUN_SCATTER ? 2 : 3));
    op.root = 1;
    op.send_counts = counts_;
    EXPECT_TRUE(Accepts(op)) << sdk::OperationName(kind);
  }
  op = Op(DTRUN_REDUCE, a_, a_);
  op.root = 1;
  EXPECT_TRUE(Accepts(op));
  EXPECT_TRUE(Accepts(Op(DTRUN_ALLTOALL, a_, a_)));
}

TEST_F(OperationWithParts, ExchangesInPlaceOnlyWithEqualParts) {
  dtrun_op op = Alltoallv();
  op.send = b_;
  EXPECT_TRUE(Accepts(op));
  const std::uint64_t packed[4] = {0, 3, 9, 5}, other[4] = {3, 2, 1, 4};
  op.recv_offsets = packed;
  EXPECT_TRUE(Accepts(op)) << "the same places, once written down; part 2 has no elements";
  op.recv_offsets = nullptr;
  op.recv_counts = other;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "send == recv with equal counts and offsets");
}

TEST_F(OperationWithParts, TakesNoOffsetsInAReduceScatterv) {
  dtrun_op op = Op(DTRUN_REDUCE_SCATTERV, a_, b_, 0);
  op.recv_counts = op.recv_offsets = counts_;
  ExpectRefused(op, DTRUN_INVALID_ARGUMENT, "it takes no offsets");
}

}  // namespace
}  // namespace dtrun::comm

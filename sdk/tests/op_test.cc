// The words of types.h as code: forms, parts, owned copies, signatures.
#include "dtrun/plugin/op.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dtrun/plugin/signature.hpp"

namespace dtrun::sdk {
namespace {

using ::testing::ElementsAre;

dtrun_op Op(std::int32_t kind, std::uint64_t count = 2) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_FLOAT32;
  op.reduce = DTRUN_SUM;
  op.root = 1;
  op.count = count;
  op.sequence = 7;
  return op;
}

class OpParts : public ::testing::Test {
 protected:
  // As rank 1 of 3, the root.
  Parts Sent(const dtrun_op& op, int rank = 1) { return SendParts(op, rank, 3); }
  Parts Received(const dtrun_op& op, int rank = 1) { return RecvParts(op, rank, 3); }
  const Part kNothing{};
  const std::uint64_t counts_[3] = {1, 0, 2}, offsets_[3] = {5, 9, 1};
};

TEST_F(OpParts, OfAKindThatOnlyMoves) {
  EXPECT_THAT(Sent(Op(DTRUN_ALLGATHER)), ElementsAre(Part{0, 2}, Part{0, 2}, Part{0, 2}));
  EXPECT_THAT(Received(Op(DTRUN_ALLGATHER)), ElementsAre(Part{0, 2}, Part{2, 2}, Part{4, 2}));
  EXPECT_THAT(Sent(Op(DTRUN_ALLTOALL)), ElementsAre(Part{0, 2}, Part{2, 2}, Part{4, 2}));
  EXPECT_THAT(Received(Op(DTRUN_BROADCAST), 0), ElementsAre(kNothing, Part{0, 2}, kNothing));
  EXPECT_THAT(Sent(Op(DTRUN_BARRIER)), ElementsAre(kNothing, kNothing, kNothing));
}

TEST_F(OpParts, OfARootDifferFromThoseOfOthers) {
  EXPECT_THAT(Sent(Op(DTRUN_GATHER)), ElementsAre(kNothing, Part{0, 2}, kNothing));
  EXPECT_THAT(Received(Op(DTRUN_GATHER)), ElementsAre(Part{0, 2}, Part{2, 2}, Part{4, 2}));
  EXPECT_THAT(Received(Op(DTRUN_GATHER), 0), ElementsAre(kNothing, kNothing, kNothing));
  EXPECT_THAT(Sent(Op(DTRUN_SCATTER)), ElementsAre(Part{0, 2}, Part{2, 2}, Part{4, 2}));
  EXPECT_THAT(Sent(Op(DTRUN_SCATTER), 2), ElementsAre(kNothing, kNothing, kNothing));
  EXPECT_THAT(Received(Op(DTRUN_SCATTER), 2), ElementsAre(kNothing, Part{0, 2}, kNothing));
}

TEST_F(OpParts, OfTheVFormsHaveCountsAndOffsets) {
  dtrun_op op = Op(DTRUN_ALLGATHERV);
  op.recv_counts = counts_;
  EXPECT_THAT(Received(op), ElementsAre(Part{0, 1}, Part{1, 0}, Part{1, 2}));
  EXPECT_THAT(Sent(op, 2), ElementsAre(Part{0, 2}, Part{0, 2}, Part{0, 2}));
  op.recv_offsets = offsets_;
  EXPECT_THAT(Received(op), ElementsAre(Part{5, 1}, Part{9, 0}, Part{1, 2}));
  EXPECT_EQ(EndOf(Received(op)), 6u) << "an empty part reaches nowhere";
  EXPECT_EQ(SizeOf(Received(op)), 3u);
  EXPECT_EQ(LongestOf(Received(op)), 2u);
  op.kind = DTRUN_REDUCE_SCATTERV;
  op.recv_offsets = nullptr;
  EXPECT_THAT(Sent(op), ElementsAre(Part{0, 1}, Part{1, 0}, Part{1, 2}));
  EXPECT_THAT(Received(op, 2), ElementsAre(Part{0, 2}, Part{0, 2}, Part{0, 2}));
}

TEST(OpForms, StandAtTheirKind) {
  for (const std::int32_t kind :
       {DTRUN_BROADCAST, DTRUN_REDUCE, DTRUN_GATHER, DTRUN_SCATTER, DTRUN_GATHERV, DTRUN_SCATTERV}) {
    EXPECT_TRUE(IsRooted(kind)) << OperationName(kind);
  }
  EXPECT_FALSE(IsRooted(DTRUN_ALLTOALLV));
  for (const std::int32_t kind :
       {DTRUN_ALLREDUCE, DTRUN_REDUCE, DTRUN_REDUCE_SCATTER, DTRUN_REDUCE_SCATTERV}) {
    EXPECT_TRUE(IsReduction(kind)) << OperationName(kind);
  }
  EXPECT_FALSE(IsReduction(DTRUN_GATHER));
  EXPECT_FALSE(IsCollective(DTRUN_SEND));
  EXPECT_EQ(FormOf(77).send, Shape::kNone);
}

TEST(OpCopies, OutliveTheArraysOfTheCaller) {
  dtrun_op op = Op(DTRUN_ALLTOALLV);
  std::vector<std::uint64_t> sent = {1, 2}, received = {3, 4};
  op.send_counts = sent.data();
  op.recv_counts = received.data();
  OwnedOp owned = OwnedOp(op, 2);
  sent.assign(2, 0);
  received.assign(2, 0);
  EXPECT_EQ(owned->send_counts[1], 2u);
  EXPECT_EQ(owned->recv_counts[0], 3u);
  EXPECT_EQ(owned->send_offsets, nullptr);
}

TEST(OpTexts, NameAnOperationByItsNumberOrPeer) {
  EXPECT_EQ(OperationText(Op(DTRUN_REDUCE_SCATTER)), "reduce_scatter 7");
  dtrun_op op = Op(DTRUN_RECV);
  op.peer = 2;
  op.tag = 3;
  EXPECT_EQ(OperationText(op), "recv from rank 2 with tag 3");
  op.peer = DTRUN_ANY_SOURCE;
  EXPECT_EQ(OperationText(op), "recv from any rank with tag 3");
}

TEST(Signatures, HoldWhatRanksMustAgreeOn) {
  const auto text = [](std::int32_t kind) { return SignatureText(SignatureOf(Op(kind, 8), 2)); };
  EXPECT_EQ(text(DTRUN_ALLREDUCE), "allreduce (float32 x 8, sum)");
  EXPECT_EQ(text(DTRUN_BROADCAST), "broadcast (float32 x 8, root 1)");
  EXPECT_EQ(text(DTRUN_REDUCE), "reduce (float32 x 8, sum, root 1)");
  EXPECT_EQ(text(DTRUN_BARRIER), "barrier");
  EXPECT_NE(SignatureOf(Op(DTRUN_ALLREDUCE, 8), 2).Digest(), SignatureOf(Op(DTRUN_ALLREDUCE, 9), 2).Digest());
}

TEST(Signatures, AreTheSameAfterTheyWereStored) {
  Signature rooted = SignatureOf(Op(DTRUN_REDUCE, 8), 2);
  rooted.device_kind = DTRUN_DEVICE_CUDA;
  for (const Signature& signature : {Signature(), rooted}) {
    EXPECT_EQ(Signature::OfWords(signature.Words()), signature);
    Signature other = signature;
    ++other.device_kind;
    EXPECT_NE(other.Words(), signature.Words());
  }
}

TEST(Signatures, LeaveOutWhatMayDiffer) {
  EXPECT_EQ(SignatureOf(Op(DTRUN_GATHERV, 8), 2), SignatureOf(Op(DTRUN_GATHERV, 99), 2));
}

TEST(Signatures, CompareCountsThatAllRanksGive) {
  const std::uint64_t counts[] = {1, 2}, others[] = {2, 1};
  dtrun_op one = Op(DTRUN_ALLGATHERV), same = Op(DTRUN_ALLGATHERV), other = Op(DTRUN_ALLGATHERV);
  one.recv_counts = same.recv_counts = counts;
  other.recv_counts = others;
  same.count = 77;  // this rank's own
  EXPECT_EQ(SignatureOf(one, 2), SignatureOf(same, 2));
  EXPECT_NE(SignatureOf(one, 2), SignatureOf(other, 2));
  EXPECT_THAT(SignatureText(SignatureOf(one, 2)),
              ::testing::MatchesRegex("allgatherv \\(float32, counts per rank with digest [0-9a-f]{8}\\)"));
}

}  // namespace
}  // namespace dtrun::sdk

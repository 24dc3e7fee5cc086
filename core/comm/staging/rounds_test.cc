#include "core/comm/staging/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::comm {
namespace {

using ::testing::ElementsAre;

dtrun_op Op(std::int32_t kind, std::uint64_t count) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_FLOAT32;
  op.count = count;
  op.root = 0;
  op.peer = 1;
  return op;
}

std::vector<std::vector<std::uint64_t>> Of(const std::vector<StagedCopy>& copies) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const StagedCopy& copy : copies) all.push_back({copy.device, copy.host, copy.bytes});
  return all;
}

TEST(Rounds, CutAnAllreduceIntoPiecesThatServeBothWays) {
  const dtrun_op op = Op(DTRUN_ALLREDUCE, 10);
  const Rounds rounds(op, 0, 3, 16);
  ASSERT_EQ(rounds.size(), 3u);
  const Round last = rounds.At(2);
  EXPECT_EQ(last.count, 2u);
  EXPECT_THAT(Of(last.out), ElementsAre(ElementsAre(32u, 0u, 8u)));
  EXPECT_THAT(Of(last.in), ElementsAre(ElementsAre(32u, 0u, 8u)));
  EXPECT_TRUE(last.in_place);
}

TEST(Rounds, TakeTheSameElementsOfEveryPart) {
  const dtrun_op op = Op(DTRUN_ALLGATHER, 5);
  const Rounds rounds(op, 1, 2, 16);  // two elements of each part
  ASSERT_EQ(rounds.size(), 3u);
  const Round second = rounds.At(1);
  EXPECT_EQ(second.count, 2u);
  EXPECT_THAT(Of(second.out), ElementsAre(ElementsAre(8u, 0u, 8u)));
  EXPECT_THAT(Of(second.in), ElementsAre(ElementsAre(8u, 0u, 8u), ElementsAre(28u, 8u, 8u)));
  EXPECT_EQ(rounds.At(2).count, 1u);
}

TEST(Rounds, AreEquallyManyOnTheRootAndElsewhere) {
  for (const std::int32_t kind : {DTRUN_GATHER, DTRUN_SCATTER, DTRUN_REDUCE, DTRUN_BROADCAST}) {
    const dtrun_op op = Op(kind, 1000);
    EXPECT_EQ(Rounds(op, 0, 4, 256).size(), Rounds(op, 3, 4, 256).size()) << kind;
  }
}

TEST(Rounds, SendFromTheRootOfABroadcastAndReceiveElsewhere) {
  const dtrun_op op = Op(DTRUN_BROADCAST, 2);
  const Round root = Rounds(op, 0, 2, 64).At(0), other = Rounds(op, 1, 2, 64).At(0);
  EXPECT_EQ(root.out.size(), 1u);
  EXPECT_TRUE(root.in.empty());
  EXPECT_TRUE(other.out.empty());
  EXPECT_EQ(other.in.size(), 1u);
  EXPECT_EQ(root.recv_bytes, 8u);
}

TEST(Rounds, LeaveGapsBetweenPartsAlone) {
  dtrun_op op = Op(DTRUN_ALLTOALLV, 0);
  const std::uint64_t counts[] = {2, 3}, offsets[] = {0, 4};
  op.send_counts = op.recv_counts = counts;
  op.recv_offsets = offsets;
  const Rounds rounds(op, 0, 2, 4);
  ASSERT_EQ(rounds.size(), 1u);  // the other rank's counts are not known here
  const Round round = rounds.At(0);
  EXPECT_THAT(Of(round.out), ElementsAre(ElementsAre(0u, 0u, 20u)));
  EXPECT_THAT(Of(round.in), ElementsAre(ElementsAre(0u, 0u, 8u), ElementsAre(16u, 16u, 12u)));
  EXPECT_EQ(round.recv_bytes, 28u);
}

TEST(Rounds, AreOneForABarrierAndForMessages) {
  dtrun_op op = Op(DTRUN_RECV, 100);
  op.peer = DTRUN_ANY_SOURCE;
  EXPECT_EQ(Rounds(op, 0, 4, 4).size(), 1u);
  EXPECT_EQ(Rounds(op, 0, 4, 4).At(0).recv_bytes, 400u);
  op.kind = DTRUN_SEND;
  op.peer = 1;
  EXPECT_EQ(Rounds(op, 0, 4, 4).size(), 1u) << "a receive from any rank may meet it";
  const dtrun_op barrier = Op(DTRUN_BARRIER, 0);
  EXPECT_EQ(Rounds(barrier, 0, 4, 4).size(), 1u);
}

}  // namespace
}  // namespace dtrun::comm

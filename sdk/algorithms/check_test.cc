#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "dtrun/algorithms.hpp"

namespace dtrun::algorithms {
namespace {

using ::testing::HasSubstr;

// "" when the operation is accepted on rank 1 of 3.
std::string Refusal(const std::function<void(dtrun_op&)>& spoil, dtrun_status code = DTRUN_INVALID_ARGUMENT) {
  alignas(16) static char memory[64];
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_ALLREDUCE;
  op.dtype = DTRUN_FLOAT64;
  op.reduce = DTRUN_SUM;
  op.root = op.peer = -1;
  op.count = 2;
  op.send = op.recv = memory;
  spoil(op);
  try {
    CheckOperation(op, 1, 3);
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code(), code);
    return failure.what();
  }
  return "";
}

TEST(CheckOperation, AcceptsWhatMakesSense) {
  EXPECT_EQ(Refusal([](dtrun_op&) {}), "");
  EXPECT_EQ(Refusal([](dtrun_op& op) { op.count = 0, op.send = op.recv = nullptr; }), "");
  EXPECT_EQ(Refusal([](dtrun_op& op) { op.kind = DTRUN_BARRIER, op.dtype = 0, op.send = op.recv = nullptr; }),
            "");
  EXPECT_EQ(
      Refusal([](dtrun_op& op) { op.kind = DTRUN_RECV, op.peer = DTRUN_ANY_SOURCE, op.send = nullptr; }), "");
}

TEST(CheckOperation, NamesWhatIsUnknown) {
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = 77; }, DTRUN_UNSUPPORTED), HasSubstr("77"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.dtype = 77; }), HasSubstr("unknown element type 77"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.reduce = 77; }), HasSubstr("unknown reduction 77"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.dtype = DTRUN_INT32, op.reduce = DTRUN_AVG; }),
              HasSubstr("no meaning for element type 5"));
}

TEST(CheckOperation, RefusesRanksOutsideTheWorld) {
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = DTRUN_REDUCE, op.root = 3; }), HasSubstr("no rank 3"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = DTRUN_SEND, op.peer = DTRUN_ANY_SOURCE; }),
              HasSubstr("no rank -1"));
}

TEST(CheckOperation, LooksOnlyAtTheBuffersThatThisRankNeeds) {
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.send = nullptr; }), HasSubstr("the send buffer is null"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.recv = nullptr; }), HasSubstr("the recv buffer is null"));
  EXPECT_EQ(Refusal([](dtrun_op& op) { op.kind = DTRUN_REDUCE, op.root = 0, op.recv = nullptr; }), "");
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = DTRUN_REDUCE, op.root = 1, op.recv = nullptr; }),
              HasSubstr("recv buffer"));
  EXPECT_EQ(Refusal([](dtrun_op& op) { op.kind = DTRUN_SCATTER, op.root = 0, op.send = nullptr; }), "");
}

TEST(CheckOperation, RefusesMisalignedBuffers) {
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.recv = static_cast<char*>(op.recv) + 4; }),
              HasSubstr("not aligned to 8 bytes"));
}

TEST(CheckOperation, RefusesCountsThatNoMemoryHolds) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max() / 2;
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.count = kHuge; }), HasSubstr("do not fit the address space"));
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = DTRUN_ALLGATHER, op.count = kHuge / 16; }),
              HasSubstr("do not fit the address space"));
  const std::vector<std::uint64_t> counts = {kHuge / 12, kHuge / 12, 1};
  EXPECT_THAT(Refusal([&](dtrun_op& op) { op.kind = DTRUN_ALLGATHERV, op.recv_counts = counts.data(); }),
              HasSubstr("do not fit the address space"));
  const std::vector<std::uint64_t> few = {1, 1, 1};
  const std::vector<std::uint64_t> far = {0, kHuge, 1};
  EXPECT_THAT(Refusal([&](dtrun_op& op) {
                op.kind = DTRUN_ALLGATHERV, op.recv_counts = few.data(), op.recv_offsets = far.data();
              }),
              HasSubstr("do not fit the address space"));
}

TEST(CheckOperation, AsksForTheCountsOfTheVForms) {
  EXPECT_THAT(Refusal([](dtrun_op& op) { op.kind = DTRUN_ALLTOALLV; }), HasSubstr("send_counts is null"));
}

}  // namespace
}  // namespace dtrun::algorithms

#include "tools/bench/program/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// All ranks of a call in one process, with int32 buffers.
class World {
 public:
  World(Operation operation, int ranks, std::uint64_t bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      Call call{operation, *ParseElement("int32"),
                ShapeOf(operation, static_cast<std::uint64_t>(ranks), bytes, 4), nullptr, nullptr};
      send.emplace_back(call.shape.send);
      recv.emplace_back(call.shape.recv);
      call.send = send.back().data();
      call.recv = recv.back().data();
      Fill(call, rank);
      calls.push_back(call);
    }
  }
  int size() const { return static_cast<int>(calls.size()); }
  bool Right() const {
    for (int rank = 0; rank < size(); ++rank) {
      if (!Check(calls[static_cast<std::size_t>(rank)], rank, size())) return false;
    }
    return true;
  }
  std::vector<std::vector<std::int32_t>> send, recv;
  std::vector<Call> calls;
};

std::int32_t SumAt(const World& world, std::size_t i) {
  std::int32_t sum = 0;
  for (const auto& send : world.send) sum += send[i];
  return sum;
}

constexpr std::uint64_t kBytes = 20'000;  // more than one tile

TEST(Values, AnAllreduceIsCheckedElementByElement) {
  World world(Operation::kAllreduce, 3, kBytes);
  EXPECT_FALSE(world.Right());  // nothing has been reduced yet
  for (auto& recv : world.recv) {
    for (std::size_t i = 0; i < recv.size(); ++i) recv[i] = SumAt(world, i);
  }
  EXPECT_TRUE(world.Right());
  ++world.recv[1][4321];
  const Status checked = Check(world.calls[1], 1, 3);
  EXPECT_THAT(checked.error().text, HasSubstr("element 4321 is"));
}

TEST(Values, SumsOfNeighbouringElementsDifferInEveryWorld) {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    const World world(Operation::kAllreduce, ranks, 16);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(SumAt(world, i), SumAt(world, i + 1)) << ranks;
  }
}

TEST(Values, AReductionHasAResultOnItsRootOnly) {
  World world(Operation::kReduce, 2, kBytes);
  for (std::size_t i = 0; i < world.recv[0].size(); ++i) world.recv[0][i] = SumAt(world, i);
  EXPECT_TRUE(world.Right());
}

TEST(Values, ABroadcastSpreadsWhatTheRootHas) {
  World world(Operation::kBroadcast, 2, kBytes);
  EXPECT_FALSE(world.Right());
  world.recv[1] = world.recv[0];
  EXPECT_TRUE(world.Right());
}

TEST(Values, AnAllgatherHasThePartsInOrder) {
  World world(Operation::kAllgather, 2, kBytes);
  const std::size_t n = world.calls[0].shape.count;
  for (auto& recv : world.recv) {
    std::copy_n(world.send[0].begin(), n, recv.begin());
    std::copy_n(world.send[1].begin(), n, recv.begin() + static_cast<std::ptrdiff_t>(n));
  }
  EXPECT_TRUE(world.Right());
  std::swap_ranges(world.recv[0].begin(), world.recv[0].begin() + static_cast<std::ptrdiff_t>(n),
                   world.recv[0].begin() + static_cast<std::ptrdiff_t>(n));
  EXPECT_FALSE(world.Right());
}

TEST(Values, AReduceScatterGivesEachRankItsPart) {
  World world(Operation::kReduceScatter, 2, kBytes);
  const std::size_t n = world.calls[0].shape.count;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < n; ++i) world.recv[rank][i] = SumAt(world, rank * n + i);
  }
  EXPECT_TRUE(world.Right());
}

TEST(Values, AnAlltoallTransposesParts) {
  World world(Operation::kAlltoall, 3, kBytes);
  const std::size_t n = world.calls[0].shape.count;
  for (std::size_t to = 0; to < 3; ++to) {
    for (std::size_t from = 0; from < 3; ++from)
      std::copy_n(&world.send[from][to * n], n, &world.recv[to][from * n]);
  }
  EXPECT_TRUE(world.Right());
}

TEST(Values, AnExchangeBringsWhatTheRankBeforeHas) {
  World world(Operation::kSendrecv, 3, kBytes);
  for (std::size_t rank = 0; rank < 3; ++rank) world.recv[rank] = world.send[(rank + 2) % 3];
  EXPECT_TRUE(world.Right());
  std::swap_ranges(world.recv[0].begin(), world.recv[0].end(), world.recv[1].begin());
  EXPECT_FALSE(world.Right());
}

TEST(Values, SumsOfSixteenBitFloatsMayBeRoundedButNotWrong) {
  constexpr int kRanks = 900;
  const Element element = *ParseElement("bfloat16");
  std::uint16_t sent[3] = {}, received[3] = {};
  Call call{Operation::kAllreduce, element, {3, 3, 3, 6}, sent, received};
  int sums[3] = {};
  for (int rank = 0; rank < kRanks; ++rank) {
    Fill(call, rank);
    for (int i = 0; i < 3; ++i) sums[i] += static_cast<int>(Decode(element, &sent[i]));
  }
  for (int i = 0; i < 3; ++i) Encode(element, sums[i] + 4, &received[i]);  // 1/256 off
  EXPECT_TRUE(Check(call, 0, kRanks).ok());
  Encode(element, sums[2] * 2, &received[2]);
  EXPECT_THAT(Check(call, 0, kRanks).error().text, AllOf(HasSubstr("element 2 is"), HasSubstr("expected")));
}

}  // namespace
}  // namespace dtrun::bench

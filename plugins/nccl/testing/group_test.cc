// Groups, streams and the operations that the inherited suite does not know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <thread>

#include "fake.h"
#include "fake_stream.h"
#include "player.h"

namespace dtrun::nccl_test {
namespace {

constexpr dtrun_group_params kGroup{sizeof(dtrun_group_params), 0};

using conformance::AllreduceOp;
using conformance::MakeOp;
using conformance::Outcome;
using conformance::Pending;
using conformance::Rank;
using conformance::RecvOp;
using conformance::SendOp;
using conformance::Subject;
using ::testing::HasSubstr;

using Ints = std::vector<std::int32_t>;

dtrun_op MoveOp(std::int32_t kind, const void* send, void* recv, std::uint64_t count, int root = -1) {
  dtrun_op op = AllreduceOp(send, recv, count, DTRUN_INT32, 0);
  op.kind = kind;
  op.root = root;
  return op;
}

// Element i of rank `rank`.
std::int32_t Item(int rank, std::size_t i) { return rank * 1000 + static_cast<std::int32_t>(i); }
Ints Items(int rank, std::size_t count) {
  Ints items(count);
  for (std::size_t i = 0; i < count; ++i) items[i] = Item(rank, i);
  return items;
}

class NcclAlltoall : public ::testing::TestWithParam<const char*> {};

// With NCCL's own alltoall, and without: then as grouped messages.
TEST_P(NcclAlltoall, ExchangesPartsAlsoInPlace) {
  const Fake fake(GetParam());
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    for (const bool in_place : {false, true}) {
      const Ints send = Items(rank.rank(), 30);
      Ints recv = in_place ? send : Ints(30);
      EXPECT_TRUE(
          rank.Do(MoveOp(DTRUN_ALLTOALL, in_place ? recv.data() : send.data(), recv.data(), 10)).ok());
      for (std::size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(recv[i],
                  Item(static_cast<int>(i / 10), static_cast<std::size_t>(rank.rank()) * 10 + i % 10));
      }
    }
  });
  EXPECT_EQ(fake.nccl().native_all_to_alls > 0, GetParam() == std::string(FAKE_NCCL_FILE));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutItsOwn, NcclAlltoall,
                         ::testing::Values(FAKE_NCCL_FILE, LEAN_NCCL_FILE));

TEST(NcclOperation, ReduceReachesTheRootOnly) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    Ints data(100, rank.rank() + 1);
    dtrun_op op = MoveOp(DTRUN_REDUCE, data.data(), rank.rank() == 2 ? data.data() : nullptr, 100, 2);
    op.reduce = DTRUN_SUM;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(data, Ints(100, rank.rank() == 2 ? 6 : rank.rank() + 1));
  });
}

TEST(NcclOperation, GatherAndScatterMeetAtTheRoot) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    const bool root = rank.rank() == 1;
    const Ints own = Items(rank.rank(), 10);
    Ints all(root ? 30 : 0);
    EXPECT_TRUE(rank.Do(MoveOp(DTRUN_GATHER, own.data(), root ? all.data() : nullptr, 10, 1)).ok());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], Item(static_cast<int>(i / 10), i % 10));
    Ints back(10);
    EXPECT_TRUE(rank.Do(MoveOp(DTRUN_SCATTER, root ? all.data() : nullptr, back.data(), 10, 1)).ok());
    EXPECT_EQ(back, own);
    // In place, the root's own part stays where it is.
    EXPECT_TRUE(rank.Do(MoveOp(DTRUN_GATHER, root ? all.data() + 10 : own.data(), all.data(), 10, 1)).ok());
    EXPECT_TRUE(rank.Do(MoveOp(DTRUN_SCATTER, all.data(), root ? all.data() + 10 : back.data(), 10, 1)).ok());
    EXPECT_EQ(back, own);
  });
}

TEST(NcclOperation, UnevenFormsFollowTheirCountsAndOffsets) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    const auto self = static_cast<std::size_t>(rank.rank());
    const std::uint64_t counts[] = {5, 0, 7};
    const std::uint64_t offsets[] = {10, 2, 0};  // not in the order of the ranks
    const Ints own = Items(rank.rank(), counts[self]);

    Ints all(15, -1);
    dtrun_op op = MoveOp(DTRUN_ALLGATHERV, own.data(), all.data(), 0);
    op.recv_counts = counts;
    op.recv_offsets = offsets;
    EXPECT_TRUE(rank.Do(op).ok());
    Ints expected(15, -1);
    for (const int from : {0, 2}) {
      const Ints items = Items(from, counts[from]);
      std::copy(items.begin(), items.end(), expected.begin() + static_cast<std::ptrdiff_t>(offsets[from]));
    }
    EXPECT_EQ(all, expected);

    const bool root = rank.rank() == 2;
    Ints gathered(15, -1);
    op = MoveOp(DTRUN_GATHERV, own.data(), root ? gathered.data() : nullptr, counts[self], 2);
    op.recv_counts = root ? counts : nullptr;
    op.recv_offsets = root ? offsets : nullptr;
    EXPECT_TRUE(rank.Do(op).ok());
    if (root) {
      EXPECT_EQ(gathered, expected);
    }

    Ints back(counts[self]);
    op = MoveOp(DTRUN_SCATTERV, root ? gathered.data() : nullptr, back.data(), counts[self], 2);
    op.send_counts = root ? counts : nullptr;
    op.send_offsets = root ? offsets : nullptr;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(back, own);

    Ints terms(12, rank.rank() + 1);
    Ints sums(counts[self]);
    op = MoveOp(DTRUN_REDUCE_SCATTERV, terms.data(), sums.data(), 0);
    op.reduce = DTRUN_SUM;
    op.recv_counts = counts;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(sums, Ints(counts[self], 6));
  });
}

// Rank r sends s + 1 elements to rank s, also in place.
TEST(NcclOperation, AlltoallvFollowsItsCounts) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    const auto self = static_cast<std::size_t>(rank.rank());
    const std::uint64_t send_counts[] = {1, 2, 3};
    const std::vector<std::uint64_t> recv_counts(3, self + 1);
    const Ints send = Items(rank.rank(), 6);
    Ints recv((self + 1) * 3);
    dtrun_op op = MoveOp(DTRUN_ALLTOALLV, send.data(), recv.data(), 0);
    op.send_counts = send_counts;
    op.recv_counts = recv_counts.data();
    EXPECT_TRUE(rank.Do(op).ok());
    const std::size_t first = self * (self + 1) / 2;
    for (std::size_t i = 0; i < recv.size(); ++i) {
      EXPECT_EQ(recv[i], Item(static_cast<int>(i / (self + 1)), first + i % (self + 1)));
    }
    Ints data = Items(rank.rank(), 6);
    const std::uint64_t twos[] = {2, 2, 2};
    op = MoveOp(DTRUN_ALLTOALLV, data.data(), data.data(), 0);
    op.send_counts = op.recv_counts = twos;
    EXPECT_TRUE(rank.Do(op).ok());
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(data[i], Item(static_cast<int>(i / 2), self * 2 + i % 2));
  });
}

TEST(NcclOperation, PremulSumScalesEachRankByItsOwnFactor) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [](Rank& rank) {
    std::vector<double> data(10, 3);
    dtrun_op op = AllreduceOp(data.data(), data.data(), 10, DTRUN_FLOAT64, DTRUN_PREMUL_SUM);
    op.scale = rank.rank() == 0 ? 0.5 : 2;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(data, std::vector<double>(10, 7.5));
    std::uint16_t half = 0x4000;  // 2 in float16
    op = AllreduceOp(&half, &half, 1, DTRUN_FLOAT16, DTRUN_PREMUL_SUM);
    op.scale = 0.25;
    EXPECT_TRUE(rank.Do(op).ok());
    EXPECT_EQ(half, 0x3c00);  // 1
  });
  EXPECT_EQ(fake.nccl().reductions, 0);
}

TEST(NcclOperation, ComplexNumbersAddUpAndAverageButDoNotMultiply) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [](Rank& rank) {
    using Complex = std::complex<float>;
    std::vector<Complex> data(10, Complex(1, static_cast<float>(rank.rank())));
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), 10, DTRUN_COMPLEX64, DTRUN_SUM)).ok());
    EXPECT_EQ(data, std::vector<Complex>(10, Complex(2, 1)));
    EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), 10, DTRUN_COMPLEX64, DTRUN_AVG)).ok());
    EXPECT_EQ(data, std::vector<Complex>(10, Complex(2, 1)));
    Outcome refusal;
    EXPECT_EQ(rank.Start(AllreduceOp(data.data(), data.data(), 10, DTRUN_COMPLEX64, DTRUN_PROD), &refusal),
              nullptr);
    EXPECT_EQ(refusal.code, DTRUN_UNSUPPORTED);
    EXPECT_THAT(refusal.text, HasSubstr("prod of complex64"));
  });
}

// Every rank sends to all and only then receives from all: a group makes one exchange of it.
TEST(NcclGroup, LetsMessagesCross) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(3, [&](Rank& rank, dtrun_backend_comm* comm) {
    const Ints sent = Items(rank.rank(), 1000);
    std::vector<Ints> got(3, Ints(1000));
    ASSERT_EQ(player.table().group_begin(comm, &kGroup, nullptr), DTRUN_OK);
    std::vector<std::unique_ptr<Pending>> pending;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank.rank()) pending.push_back(rank.Start(SendOp(sent.data(), 1000, DTRUN_INT32, peer, 0)));
    }
    for (int peer = 0; peer < 3; ++peer) {
      Ints& to = got[static_cast<std::size_t>(peer)];
      if (peer != rank.rank()) pending.push_back(rank.Start(RecvOp(to.data(), 1000, DTRUN_INT32, peer, 0)));
    }
    // Nothing has started.
    bool done = true;
    EXPECT_TRUE(pending.front()->Test(&done).ok());
    EXPECT_FALSE(done);
    ASSERT_EQ(player.table().group_end(comm, &kGroup, nullptr), DTRUN_OK);
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank.rank()) {
        EXPECT_EQ(got[static_cast<std::size_t>(peer)], Items(peer, 1000));
      }
    }
  });
}

TEST(NcclGroup, TakesCollectivesAndMayBeEmpty) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    const dtrun_backend& table = player.table();
    ASSERT_EQ(table.group_begin(comm, &kGroup, nullptr), DTRUN_OK);
    ASSERT_EQ(table.group_end(comm, &kGroup, nullptr), DTRUN_OK);
    EXPECT_EQ(table.group_end(comm, &kGroup, nullptr), DTRUN_FAILED_PRECONDITION);
    Ints a(10, 1);
    std::vector<double> b(20, 2);
    ASSERT_EQ(table.group_begin(comm, &kGroup, nullptr), DTRUN_OK);
    EXPECT_EQ(table.group_begin(comm, &kGroup, nullptr), DTRUN_FAILED_PRECONDITION);
    const auto one = rank.Start(AllreduceOp(a.data(), a.data(), 10, DTRUN_INT32, DTRUN_SUM));
    const auto two = rank.Start(AllreduceOp(b.data(), b.data(), 20, DTRUN_FLOAT64, DTRUN_PROD));
    ASSERT_EQ(table.group_end(comm, &kGroup, nullptr), DTRUN_OK);
    EXPECT_TRUE(two->Wait().ok());
    EXPECT_TRUE(one->Wait().ok());
    EXPECT_EQ(a, Ints(10, 2));
    EXPECT_EQ(b, std::vector<double>(20, 4));
  });
}

TEST(NcclGroup, OutlivesARequestThatIsDroppedInside) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    Ints data(10, 1);
    ASSERT_EQ(player.table().group_begin(comm, &kGroup, nullptr), DTRUN_OK);
    rank.Start(AllreduceOp(data.data(), data.data(), 10, DTRUN_INT32, DTRUN_SUM));
    ASSERT_EQ(player.table().group_end(comm, &kGroup, nullptr), DTRUN_OK);
    EXPECT_TRUE(rank.Barrier().ok());  // comes after it on the same stream
    EXPECT_EQ(data, Ints(10, 2));
  });
}

// The device runs what the host gave it in order; the host waits for nothing until the end.
TEST(NcclStream, OrdersWorkBeforeAndAfterAnOperation) {
  const Fake fake;
  const Player player(fake.Backend());
  player.Play(2, [&](Rank& rank, dtrun_backend_comm* comm) {
    nccl_fake::FakeStream before;
    nccl_fake::FakeStream after;
    std::atomic<bool> open{false};
    std::atomic<bool> read{false};
    Ints data(10, 0);
    Ints seen;
    before.Post([&] {
      while (!open) std::this_thread::yield();
      data.assign(10, rank.rank() + 1);
    });
    {
      const dtrun_op op = AllreduceOp(data.data(), data.data(), 10, DTRUN_INT32, DTRUN_SUM);
      const auto pending = player.Start(comm, op, &before);
      ASSERT_NE(pending, nullptr);
      EXPECT_EQ(player.OrderAfter(*pending, &after), DTRUN_OK);
    }  // the request is dropped without a wait
    after.Post([&] {
      seen = data;
      read = true;
    });
    EXPECT_FALSE(read);
    open = true;
    while (!read) std::this_thread::yield();
    EXPECT_EQ(seen, Ints(10, 3));
  });
}

// NCCL's first operations connect the devices: they are launched later, by a thread of NCCL.
TEST(NcclStream, SeesAnOperationThatIsLaunchedLate) {
  const Fake fake;
  const Player player(fake.Backend());
  fake.nccl().launch_polls = 5;
  player.Play(2, [&](Rank& rank, dtrun_backend_comm*) {
    for (int round = 0; round < 3; ++round) {
      Ints data(10, 1);
      EXPECT_TRUE(rank.Do(AllreduceOp(data.data(), data.data(), 10, DTRUN_INT32, DTRUN_SUM)).ok());
      EXPECT_EQ(data, Ints(10, 2));
    }
  });
}

}  // namespace
}  // namespace dtrun::nccl_test

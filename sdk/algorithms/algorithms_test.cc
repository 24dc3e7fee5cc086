// Every collective over mailboxes in memory, against a reference, in worlds of 1 to 9 ranks.
#include "dtrun/algorithms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>

#include "dtrun/kernels.hpp"
#include "sdk/algorithms/mailbox.h"
#include "sdk/algorithms/trial.h"

namespace dtrun::algorithms {
namespace {

// A value for which sums and products of nine ranks stay exact in float32: 1 or 2.
std::int32_t Value(int rank, std::size_t index) {
  return 1 + static_cast<std::int32_t>((static_cast<std::size_t>(rank) * 7 + index * 3) % 5 % 2);
}
std::int32_t SumAt(int ranks, std::size_t index) {
  std::int32_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Value(rank, index);
  return sum;
}

using Vector = std::vector<std::int32_t>;

Vector Filled(int rank, std::size_t count) {
  Vector data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = Value(rank, i);
  return data;
}

// Runs `body` for every world and count, on a thread per rank.
void ForEachWorld(const std::function<void(Mailbox&, int ranks, std::size_t count)>& body) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const std::size_t count : kCounts) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements");
      PlayRanks(ranks, [&](Mailbox& mailbox) { body(mailbox, ranks, count); });
    }
  }
}

std::vector<std::uint64_t> Uneven(int ranks, std::size_t count) {
  std::vector<std::uint64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    counts.push_back(rank % 3 == 1 ? 0 : count / static_cast<std::size_t>(rank + 1));
  }
  return counts;
}

// Leaves a gap of one element before each part.
std::vector<std::uint64_t> Gapped(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t next = 0;
  for (const std::uint64_t count : counts) {
    offsets.push_back(next + 1);
    next += count + 1;
  }
  return offsets;
}

TEST(Allreduce, AddsUpInEveryWorldAndSize) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const bool in_place : {false, true}) {
      const Vector send = Filled(mailbox.rank(), count);
      Vector recv = in_place ? send : Vector(count);
      RunCollective(mailbox, Op(DTRUN_ALLREDUCE, in_place ? recv.data() : send.data(), recv.data(), count));
      Vector expected(count);
      for (std::size_t i = 0; i < count; ++i) expected[i] = SumAt(ranks, i);
      EXPECT_EQ(recv, expected);
    }
  });
}

TEST(Reduce, AddsUpOnEveryRoot) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const int root : {0, ranks - 1}) {
      Vector data = Filled(mailbox.rank(), count);
      dtrun_op op = Op(DTRUN_REDUCE, data.data(), mailbox.rank() == root ? data.data() : nullptr, count);
      op.root = root;
      RunCollective(mailbox, op);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(data[i], mailbox.rank() == root ? SumAt(ranks, i) : Value(mailbox.rank(), i));
      }
    }
  });
}

TEST(ReduceScatter, LeavesEachRankItsPart) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const bool in_place : {false, true}) {
      const std::size_t first = static_cast<std::size_t>(mailbox.rank()) * count;
      Vector send = Filled(mailbox.rank(), count * static_cast<std::size_t>(ranks));
      Vector other(count);
      std::int32_t* const recv = in_place ? send.data() + first : other.data();
      RunCollective(mailbox, Op(DTRUN_REDUCE_SCATTER, send.data(), recv, count));
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(recv[i], SumAt(ranks, first + i));
    }
  });
}

TEST(ReduceScatterv, TakesUnevenPartsAndGaps) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    const auto counts = Uneven(ranks, count);
    const auto offsets = Gapped(counts);
    const auto me = static_cast<std::size_t>(mailbox.rank());
    const Vector send = Filled(mailbox.rank(), offsets.back() + counts.back());
    Vector recv(counts[me]);
    dtrun_op op = Op(DTRUN_REDUCE_SCATTERV, send.data(), recv.data(), 0);
    op.recv_counts = counts.data();
    op.recv_offsets = offsets.data();
    RunCollective(mailbox, op);
    for (std::size_t i = 0; i < recv.size(); ++i) ASSERT_EQ(recv[i], SumAt(ranks, offsets[me] + i));
  });
}

TEST(Broadcast, ReachesEveryRankFromEveryRoot) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const int root : {0, ranks / 2, ranks - 1}) {
      Vector data = Filled(mailbox.rank(), count);
      dtrun_op op = Op(DTRUN_BROADCAST, nullptr, data.data(), count);
      op.root = root;
      RunCollective(mailbox, op);
      EXPECT_EQ(data, Filled(root, count));
    }
  });
}

TEST(Allgather, CollectsThePartsOfAllRanks) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const bool in_place : {false, true}) {
      const Vector own = Filled(mailbox.rank(), count);
      Vector recv(count * static_cast<std::size_t>(ranks));
      std::int32_t* const place = recv.data() + static_cast<std::size_t>(mailbox.rank()) * count;
      if (in_place) std::copy(own.begin(), own.end(), place);
      RunCollective(mailbox, Op(DTRUN_ALLGATHER, in_place ? place : own.data(), recv.data(), count));
      for (int rank = 0; rank < ranks; ++rank) {
        const auto begin = recv.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * count);
        EXPECT_EQ(Vector(begin, begin + static_cast<std::ptrdiff_t>(count)), Filled(rank, count));
      }
    }
  });
}

TEST(Allgatherv, TakesUnevenPartsAndGaps) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    const auto counts = Uneven(ranks, count);
    const auto offsets = Gapped(counts);
    const Vector own = Filled(mailbox.rank(), counts[static_cast<std::size_t>(mailbox.rank())]);
    Vector recv(offsets.back() + counts.back(), -1);
    dtrun_op op = Op(DTRUN_ALLGATHERV, own.data(), recv.data(), 0);
    op.recv_counts = counts.data();
    op.recv_offsets = offsets.data();
    RunCollective(mailbox, op);
    Vector expected(recv.size(), -1);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      for (std::size_t i = 0; i < counts[at]; ++i) expected[offsets[at] + i] = Value(rank, i);
    }
    EXPECT_EQ(recv, expected);
  });
}

TEST(Gather, BringsThePartsToTheRoot) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const int root : {0, ranks - 1}) {
      const bool at_root = mailbox.rank() == root;
      const Vector own = Filled(mailbox.rank(), count);
      Vector recv(at_root ? count * static_cast<std::size_t>(ranks) : 0);
      dtrun_op op = Op(DTRUN_GATHER, own.data(), recv.data(), count);
      op.root = root;
      RunCollective(mailbox, op);
      Vector expected;
      for (int rank = 0; at_root && rank < ranks; ++rank) {
        const Vector part = Filled(rank, count);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      EXPECT_EQ(recv, expected);
    }
  });
}

TEST(Gatherv, TakesUnevenPartsAndGaps) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    const int root = ranks / 2;
    const bool at_root = mailbox.rank() == root;
    const auto counts = Uneven(ranks, count);
    const auto offsets = Gapped(counts);
    const Vector own = Filled(mailbox.rank(), counts[static_cast<std::size_t>(mailbox.rank())]);
    Vector recv(at_root ? offsets.back() + counts.back() : 0, -1);
    dtrun_op op = Op(DTRUN_GATHERV, own.data(), recv.data(), own.size());
    op.root = root;
    op.recv_counts = at_root ? counts.data() : nullptr;
    op.recv_offsets = at_root ? offsets.data() : nullptr;
    RunCollective(mailbox, op);
    for (int rank = 0; at_root && rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      EXPECT_EQ(recv[offsets[at] - 1], -1);
      for (std::size_t i = 0; i < counts[at]; ++i) ASSERT_EQ(recv[offsets[at] + i], Value(rank, i));
    }
  });
}

TEST(Scatter, DealsOutThePartsOfTheRoot) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const int root : {0, ranks - 1}) {
      const bool at_root = mailbox.rank() == root;
      const Vector all = at_root ? Filled(root, count * static_cast<std::size_t>(ranks)) : Vector();
      Vector recv(count);
      dtrun_op op = Op(DTRUN_SCATTER, all.data(), recv.data(), count);
      op.root = root;
      RunCollective(mailbox, op);
      const std::size_t first = static_cast<std::size_t>(mailbox.rank()) * count;
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(recv[i], Value(root, first + i));
    }
  });
}

TEST(Scatterv, TakesUnevenPartsAndGaps) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    const int root = ranks - 1;
    const bool at_root = mailbox.rank() == root;
    const auto counts = Uneven(ranks, count);
    const auto offsets = Gapped(counts);
    const auto me = static_cast<std::size_t>(mailbox.rank());
    const Vector all = at_root ? Filled(root, offsets.back() + counts.back()) : Vector();
    Vector recv(counts[me]);
    dtrun_op op = Op(DTRUN_SCATTERV, all.data(), recv.data(), recv.size());
    op.root = root;
    op.send_counts = at_root ? counts.data() : nullptr;
    op.send_offsets = at_root ? offsets.data() : nullptr;
    RunCollective(mailbox, op);
    for (std::size_t i = 0; i < recv.size(); ++i) ASSERT_EQ(recv[i], Value(root, offsets[me] + i));
  });
}

TEST(Alltoall, ExchangesEveryPartWithEveryRank) {
  ForEachWorld([](Mailbox& mailbox, int ranks, std::size_t count) {
    for (const bool in_place : {false, true}) {
      const Vector send = Filled(mailbox.rank(), count * static_cast<std::size_t>(ranks));
      Vector recv = in_place ? send : Vector(send.size());
      RunCollective(mailbox, Op(DTRUN_ALLTOALL, in_place ? recv.data() : send.data(), recv.data(), count));
      const std::size_t first = static_cast<std::size_t>(mailbox.rank()) * count;
      for (int from = 0; from < ranks; ++from) {
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(recv[static_cast<std::size_t>(from) * count + i], Value(from, first + i));
        }
      }
    }
  });
}

// Rank r sends r + s + k elements to rank s; the parts have gaps on both sides.
TEST(Alltoallv, TakesUnevenPartsAndGaps) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    PlayRanks(ranks, [&](Mailbox& mailbox) {
      std::vector<std::uint64_t> counts;  // equal in both directions
      for (int peer = 0; peer < ranks; ++peer) {
        const int sum = peer + mailbox.rank();
        counts.push_back(sum % 4 == 3 ? 0 : static_cast<std::uint64_t>(sum) * 1000 + 5);
      }
      const auto offsets = Gapped(counts);
      for (const bool in_place : {false, true}) {
        Vector send(offsets.back() + counts.back());
        for (std::size_t peer = 0; peer < counts.size(); ++peer) {
          for (std::size_t i = 0; i < counts[peer]; ++i)
            send[offsets[peer] + i] = Value(mailbox.rank(), i + peer);
        }
        Vector recv = in_place ? send : Vector(send.size());
        dtrun_op op = Op(DTRUN_ALLTOALLV, in_place ? recv.data() : send.data(), recv.data(), 0);
        op.send_counts = op.recv_counts = counts.data();
        op.send_offsets = op.recv_offsets = offsets.data();
        RunCollective(mailbox, op);
        for (std::size_t peer = 0; peer < counts.size(); ++peer) {
          for (std::size_t i = 0; i < counts[peer]; ++i) {
            ASSERT_EQ(recv[offsets[peer] + i],
                      Value(static_cast<int>(peer), i + static_cast<std::size_t>(mailbox.rank())));
          }
        }
      }
    });
  }
}

TEST(Barrier, LetsNobodyOutBeforeAllAreIn) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    std::atomic<int> entered{0};
    PlayRanks(ranks, [&](Mailbox& mailbox) {
      for (int round = 1; round <= 20; ++round) {
        ++entered;
        dtrun_op op = Op(DTRUN_BARRIER, nullptr, nullptr, 0);
        op.dtype = 0;
        RunCollective(mailbox, op);
        EXPECT_GE(entered.load(), round * ranks);
      }
    });
  }
}

TEST(RunCollective, RefusesWhatIsNoCollective) {
  for (const int ranks : {1, 2}) {
    PlayRanks(ranks, [&](Mailbox& mailbox) {
      for (const auto& [kind, name] :
           std::map<std::int32_t, std::string>{{DTRUN_SEND, "send"}, {DTRUN_RECV, "recv"}, {63, "kind 63"}}) {
        float value = 0;
        dtrun_op op = Op(DTRUN_BARRIER, &value, &value, 1);
        op.kind = kind;
        try {
          RunCollective(mailbox, op);
          ADD_FAILURE() << name << " succeeded";
        } catch (const sdk::Failure& failure) {
          EXPECT_EQ(failure.code(), DTRUN_INTERNAL);
          EXPECT_THAT(failure.what(), testing::HasSubstr(name));
        }
      }
    });
  }
}

// A rank fails midway: after the others' calls have thrown, their memory must not be written.
TEST(Failure, EndsEveryMessageBeforeItLeaves) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (const std::int32_t dtype : {DTRUN_FLOAT32, DTRUN_BFLOAT16}) {
      PlayRanks(ranks, [&](Mailbox& mailbox) {
        std::vector<unsigned char> data(std::size_t{1'000'000} * kernels::ElementBytes(dtype));
        dtrun_op op = Op(DTRUN_ALLREDUCE, data.data(), data.data(), 1'000'000);
        op.dtype = dtype;
        mailbox.FailAfter(5 + mailbox.rank());
        EXPECT_THROW(RunCollective(mailbox, op), sdk::Failure);
        EXPECT_EQ(mailbox.under_way(), 0u);
        EXPECT_TRUE(mailbox.cancelled());
      });
    }
  }
}

}  // namespace
}  // namespace dtrun::algorithms

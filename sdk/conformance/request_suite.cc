// Requests: order, blocking, dropping, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr int kRequests = 40;
constexpr std::uint64_t kElements = 5000;

// Call k on all ranks: the sum of k + rank.
struct Calls {
  std::vector<std::vector<float>> data;
  std::vector<std::unique_ptr<Pending>> pending;

  explicit Calls(Rank& rank) : data(kRequests) {
    for (int call = 0; call < kRequests; ++call) {
      auto& buffer = data[static_cast<std::size_t>(call)];
      buffer.assign(kElements, static_cast<float>(call + rank.rank()));
      pending.push_back(
          rank.Start(AllreduceOp(buffer.data(), buffer.data(), kElements, DTRUN_FLOAT32, DTRUN_SUM)));
    }
  }
  void ExpectSums(int size) const {
    for (int call = 0; call < kRequests; ++call) {
      const float expected = static_cast<float>(call * size) + static_cast<float>(size * (size - 1)) / 2;
      EXPECT_EQ(data[static_cast<std::size_t>(call)], std::vector<float>(kElements, expected));
    }
  }
};

void WaitedForInReverse(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    const Calls calls(rank);
    for (int call = kRequests - 1; call >= 0; --call) {
      EXPECT_TRUE(calls.pending[static_cast<std::size_t>(call)]->Wait().ok());
    }
    calls.ExpectSums(rank.size());
  });
}

void CompletionFollowsTheOrderOfTheCalls(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const Calls calls(rank);
    EXPECT_TRUE(calls.pending.back()->Wait().ok());
    for (const auto& one : calls.pending) {
      bool done = false;
      EXPECT_TRUE(one->Test(&done).ok());
      EXPECT_TRUE(done);
    }
    calls.ExpectSums(rank.size());
  });
}

// A wrapper that moves some calls by itself and passes others on has two ways, and one order.
void UnlikeCallsCompleteInOrder(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!subject.Reduces(caps, DTRUN_FLOAT32, DTRUN_SUM) || !subject.Reduces(caps, DTRUN_INT32, DTRUN_MAX))
    GTEST_SKIP() << "the backend does not sum float32, or finds no largest int32";
  subject.Play(2, [](Rank& rank) {
    constexpr std::uint64_t kMany = 2 << 20;
    std::vector<float> large(kMany);
    std::int32_t small = 0;
    for (int round = 0; round < 5; ++round) {
      std::fill(large.begin(), large.end(), 1.0F);
      const auto first = rank.Start(AllreduceOp(large.data(), large.data(), kMany, DTRUN_FLOAT32, DTRUN_SUM));
      const auto second = rank.Start(AllreduceOp(&small, &small, 1, DTRUN_INT32, DTRUN_MAX));
      ASSERT_TRUE(first != nullptr && second != nullptr);
      const Outcome outcome = second->Wait();
      bool done = false;
      const Outcome earlier = first->Test(&done);
      EXPECT_TRUE(first->Wait().ok());
      ASSERT_TRUE(outcome.ok()) << outcome;
      ASSERT_TRUE(earlier.ok()) << earlier;
      ASSERT_TRUE(done) << "a later call has completed before a larger one of another type (C1)";
    }
  });
}

// The root of a broadcast has all that it needs for it, while an earlier call waits for another rank.
void ARootCompletesInOrder(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  if (!Has(caps.ops, DTRUN_BROADCAST) || !subject.Reduces(caps, DTRUN_FLOAT32, DTRUN_SUM))
    GTEST_SKIP() << "the backend has no broadcast, or does not sum float32";
  subject.Play(2, [](Rank& rank) {
    constexpr auto kTimeToComplete = std::chrono::milliseconds(100);
    std::vector<float> sums(kElements, 1), value(1, rank.rank() == 0 ? 7.0F : 0.0F);
    dtrun_op broadcast = MakeOp(DTRUN_BROADCAST);
    broadcast.send = broadcast.recv = value.data();
    broadcast.count = 1;
    broadcast.dtype = DTRUN_FLOAT32;
    broadcast.root = 0;
    if (rank.rank() == 1) rank.Await("the root has looked");
    const auto first = rank.Start(AllreduceOp(sums.data(), sums.data(), kElements, DTRUN_FLOAT32, DTRUN_SUM));
    const auto second = rank.Start(broadcast);
    ASSERT_TRUE(first != nullptr && second != nullptr);
    if (rank.rank() == 0) {
      EXPECT_EQ(second->Wait(kTimeToComplete).code, DTRUN_PENDING)
          << "a broadcast has completed on its root before an earlier allreduce that waits for rank 1 (C1)";
      rank.Tell("the root has looked");
    }
    EXPECT_TRUE(second->Wait().ok());
    EXPECT_TRUE(first->Wait().ok());
    EXPECT_EQ(value[0], 7);
    EXPECT_EQ(sums, std::vector<float>(kElements, 2));
  });
}

// The caller's arrays have other numbers once enqueue has returned, before the other rank comes.
void ArraysAreReadByEnqueue(const Subject& subject) {
  if (!Has(subject.Caps().ops, DTRUN_ALLGATHERV)) GTEST_SKIP() << "the backend has no allgatherv";
  subject.Play(2, [](Rank& rank) {
    constexpr std::uint64_t kOwn = 3;
    std::vector<std::uint64_t> counts(2, kOwn), offsets{0, kOwn};
    const std::vector<std::int32_t> own(kOwn, rank.rank() + 1);
    std::vector<std::int32_t> got(2 * kOwn);
    dtrun_op op = MakeOp(DTRUN_ALLGATHERV);
    op.send = own.data();
    op.recv = got.data();
    op.count = kOwn;
    op.dtype = DTRUN_INT32;
    op.recv_counts = counts.data();
    op.recv_offsets = offsets.data();
    if (rank.rank() == 1) rank.Await("changed");
    const auto pending = rank.Start(op);
    ASSERT_NE(pending, nullptr);
    counts.assign(2, 0);
    offsets.assign(2, 0);
    if (rank.rank() == 0) rank.Tell("changed");
    EXPECT_TRUE(pending->Wait().ok());
    EXPECT_EQ(got, (std::vector<std::int32_t>{1, 1, 1, 2, 2, 2}))
        << "its arrays of counts and offsets changed after enqueue (B5)";
  });
}

void TestSeesTheEnd(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const Calls calls(rank);
    for (const auto& one : calls.pending) EXPECT_TRUE(one->Poll().ok());
    calls.ExpectSums(rank.size());
  });
}

// The other rank comes only when release has had the time to return without it.
void ReleaseWaitsForTheOperation(const Subject& subject) {
  constexpr std::chrono::milliseconds kTimeToReturn(300);
  subject.Play(2, [=](Rank& rank) {
    if (rank.rank() == 1) {
      rank.Await("releases");
      ASSERT_FALSE(rank.IsTold("released", kTimeToReturn))
          << "release returned before the other rank took part";
    }
    Calls calls(rank);
    if (rank.rank() == 0) {
      rank.Tell("releases");
      calls.pending.front().reset();
      rank.Tell("released");
    }
    calls.pending.clear();
    calls.ExpectSums(rank.size());
  });
}

void ReleaseWaitsForTheReceive(const Subject& subject) {
  constexpr std::chrono::milliseconds kTimeToReturn(300);
  subject.Play(2, [=](Rank& rank) {
    std::int32_t value = rank.rank() == 0 ? 0 : 42;
    if (rank.rank() == 1) {
      rank.Await("releases");
      ASSERT_FALSE(rank.IsTold("released", kTimeToReturn))
          << "release of a receive returned before the other rank sent";
      EXPECT_TRUE(rank.Do(SendOp(&value, 1, DTRUN_INT32, 0, 0)).ok());
      return;
    }
    auto pending = rank.Start(RecvOp(&value, 1, DTRUN_INT32, 1, 0));
    rank.Tell("releases");
    pending.reset();
    rank.Tell("released");
    EXPECT_EQ(value, 42);
  });
}

void AnOutcomeStays(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const auto pending = rank.Start(MakeOp(DTRUN_BARRIER));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(pending->Wait().ok());
    EXPECT_TRUE(pending->Wait(nanoseconds(0)).ok());
    EXPECT_TRUE(pending->Poll().ok());
  });
}

// DTRUN_OP_BLOCKING is a hint: whatever is done with the request, it ends as others do.
void BlockingCallsEndLikeOthers(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    for (int round = 0; round < 60; ++round) {
      std::vector<float> first(kElements, 1);
      std::vector<float> second(round % 2 == 0 ? 1 : kElements, 2);
      dtrun_op op = AllreduceOp(second.data(), second.data(), second.size(), DTRUN_FLOAT32, DTRUN_SUM);
      op.flags = DTRUN_OP_BLOCKING;
      std::unique_ptr<Pending> before;
      if (round % 3 == 0) {
        before = rank.Start(AllreduceOp(first.data(), first.data(), kElements, DTRUN_FLOAT32, DTRUN_SUM));
      }
      std::unique_ptr<Pending> pending = rank.Start(op);
      switch ((round + rank.rank()) % 5) {
        case 0: EXPECT_TRUE(pending->Wait(kNoLimit).ok()); break;
        case 1: EXPECT_TRUE(pending->Poll().ok()); break;
        case 2: pending.reset(); break;
        case 3: {  // another thread than the one that enqueued
          std::thread other([&] { EXPECT_TRUE(pending->Wait(kNoLimit).ok()); });
          other.join();
          break;
        }
        default: {
          std::vector<float> third(1, 3);
          const auto behind =
              rank.Start(AllreduceOp(third.data(), third.data(), 1, DTRUN_FLOAT32, DTRUN_SUM));
          EXPECT_TRUE(behind->Wait().ok());
          EXPECT_EQ(third[0], 9);
          EXPECT_TRUE(pending->Wait(nanoseconds(0)).ok());
        }
      }
      if ((round + rank.rank()) % 5 != 4) {
        std::vector<float> third(1, 3);
        EXPECT_TRUE(rank.Do(AllreduceOp(third.data(), third.data(), 1, DTRUN_FLOAT32, DTRUN_SUM)).ok());
        EXPECT_EQ(third[0], 9);
      }
      EXPECT_EQ(second, std::vector<float>(second.size(), 6));
      if (before) {
        EXPECT_TRUE(before->Wait().ok());
        EXPECT_EQ(first, std::vector<float>(kElements, 3));
      }
    }
  });
}

// The other rank comes only when enqueue has returned.
void StartsWithoutAPeer(const Subject& subject, std::int32_t kind, std::uint32_t flags = 0) {
  if (!Has(subject.Caps().ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  subject.Play(2, [&](Rank& rank) {
    float value = 1;
    dtrun_op op = kind == DTRUN_ALLREDUCE ? AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM)
                  : rank.rank() == 0      ? SendOp(&value, 1, DTRUN_FLOAT32, 1, 0)
                                          : RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0);
    op.flags = flags;
    const int first = kind == DTRUN_RECV ? 1 : 0;
    if (rank.rank() != first) rank.Await("started");
    const auto pending = rank.Start(op);
    if (rank.rank() == first) rank.Tell("started");
    ASSERT_NE(pending, nullptr);
    EXPECT_TRUE(pending->Wait().ok());
  });
}

void SeveralThreadsMayWait(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const Calls calls(rank);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (const auto& one : calls.pending) EXPECT_TRUE(one->Wait().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    calls.ExpectSums(rank.size());
  });
}

constexpr std::size_t kFloodBytes = 1 << 20;
constexpr std::uint32_t kFlood = 32;  // more than a connection holds

std::vector<std::unique_ptr<Pending>> StartFlood(Rank& rank, std::vector<unsigned char>* data) {
  std::vector<std::unique_ptr<Pending>> pending;
  for (std::uint32_t tag = 0; tag < kFlood; ++tag) {
    unsigned char* const part = data->data() + tag * kFloodBytes;
    pending.push_back(rank.Start(rank.rank() == 0 ? SendOp(part, kFloodBytes, DTRUN_UINT8, 1, tag)
                                                  : RecvOp(part, kFloodBytes, DTRUN_UINT8, 0, tag)));
  }
  return pending;
}

// The receives come only when all sends have started.
void SendsStartWithoutReceives(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    std::vector<unsigned char> data(kFlood * kFloodBytes, 1);
    if (rank.rank() == 1) rank.Await("started");
    const auto pending = StartFlood(rank, &data);
    if (rank.rank() == 0) rank.Tell("started");
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
  });
}

}  // namespace

void AddRequestCases(const BackendUnderTest& backend) {
  AddCase("Requests", "StartWithoutAPeer", "B6", backend,
          [](const Subject& subject) { StartsWithoutAPeer(subject, DTRUN_ALLREDUCE); });
  AddCase("Requests", "OfMessagesStartWithoutAPeer", "B6", backend,
          [](const Subject& subject) { StartsWithoutAPeer(subject, DTRUN_SEND); });
  AddCase("Requests", "ThatBlockStartWithoutAPeer", "B6, B11", backend,
          [](const Subject& subject) { StartsWithoutAPeer(subject, DTRUN_RECV, DTRUN_OP_BLOCKING); });
  AddCase("Requests", "OfMessagesStartWithoutReceives", "B6", backend, SendsStartWithoutReceives);
  AddCase("Requests", "MayBeWaitedForInReverse", "B9, C1", backend, WaitedForInReverse);
  AddCase("Requests", "CompleteInTheOrderOfTheCalls", "C1", backend, CompletionFollowsTheOrderOfTheCalls);
  AddCase("Requests", "OfUnlikeCallsCompleteInOrder", "C1", backend, UnlikeCallsCompleteInOrder);
  AddCase("Requests", "OfARootCompleteInOrder", "C1", backend, ARootCompletesInOrder);
  AddCase("Requests", "KeepTheirOwnArrays", "B5", backend, ArraysAreReadByEnqueue);
  AddCase("Requests", "AreSeenToEndByTest", "B8, B9", backend, TestSeesTheEnd);
  AddCase("Requests", "FinishBeforeReleaseReturns", "B10", backend, ReleaseWaitsForTheOperation);
  AddCase("Requests", "OfReceivesFinishBeforeReleaseReturns", "B10", backend, ReleaseWaitsForTheReceive);
  AddCase("Requests", "KeepTheirOutcome", "B7", backend, AnOutcomeStays);
  AddCase("Requests", "ThatBlockEndLikeOthers", "B11, T4", backend, BlockingCallsEndLikeOthers);
  AddCase("Requests", "MayBeWaitedForBySeveralThreads", "T4", backend, SeveralThreadsMayWait);
}

}  // namespace dtrun::conformance

// Requests: order, waiting, testing, dropping, refusals.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr int kCalls = 40;
constexpr std::uint64_t kElements = 5000;

// Call k on all ranks: the sum of k + rank.
struct Calls {
  std::vector<std::vector<float>> data;
  std::vector<std::unique_ptr<Pending>> pending;

  explicit Calls(Rank& rank) : data(kCalls) {
    for (int call = 0; call < kCalls; ++call) {
      auto& buffer = data[static_cast<std::size_t>(call)];
      buffer.assign(kElements, static_cast<float>(call + rank.rank()));
      pending.push_back(
          rank.Start(AllreduceOp(buffer.data(), buffer.data(), kElements, DTRUN_FLOAT32, DTRUN_SUM)));
    }
  }
  void ExpectSums(int size) const {
    for (int call = 0; call < kCalls; ++call) {
      const float expected = static_cast<float>(call * size + size * (size - 1) / 2);
      EXPECT_EQ(data[static_cast<std::size_t>(call)], std::vector<float>(kElements, expected));
    }
  }
};

void WaitedForInReverse(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    const Calls calls(rank);
    for (int call = kCalls - 1; call >= 0; --call) {
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

void TestSeesTheEnd(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const Calls calls(rank);
    for (const auto& one : calls.pending) EXPECT_TRUE(one->Poll().ok());
    calls.ExpectSums(rank.size());
  });
}

void ReleaseWaitsForTheOperation(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    Calls calls(rank);
    calls.pending.clear();
    calls.ExpectSums(rank.size());
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

// A wait that ends early leaves the operation and its communicator as they were.
void ShortWaitsHarmNothing(const Subject& subject) {
  std::atomic<bool> waited{false};
  subject.Play(2, [&](Rank& rank) {
    if (rank.rank() == 1) {
      while (!waited) std::this_thread::yield();
      EXPECT_TRUE(rank.Barrier().ok());
      return;
    }
    const auto pending = rank.Start(MakeOp(DTRUN_BARRIER));
    EXPECT_EQ(pending->Wait(nanoseconds(0)).code, DTRUN_TIMEOUT);
    EXPECT_EQ(pending->Wait(std::chrono::milliseconds(5)).code, DTRUN_TIMEOUT);
    bool done = true;
    EXPECT_TRUE(pending->Test(&done).ok());
    EXPECT_FALSE(done);
    waited = true;
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

void RefusedCallsHarmNothing(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    std::vector<std::int32_t> data(8, 1);
    const dtrun_op good = AllreduceOp(data.data(), data.data(), 8, DTRUN_INT32, DTRUN_SUM);
    const auto refused = [&](const char* what, dtrun_status code, auto&& spoil) {
      dtrun_op op = good;
      spoil(op);
      Outcome outcome;
      EXPECT_EQ(rank.Start(op, &outcome), nullptr) << what;
      EXPECT_EQ(outcome.code, code) << what << ": " << outcome;
      EXPECT_NE(outcome.text, "") << what;
    };
    refused("unknown type", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) { op.dtype = 77; });
    refused("unknown reduction", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) { op.reduce = 77; });
    refused("avg of integers", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) { op.reduce = DTRUN_AVG; });
    refused("null send", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) { op.send = nullptr; });
    refused("null recv", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) { op.recv = nullptr; });
    refused("unknown operation", DTRUN_UNSUPPORTED, [](dtrun_op& op) { op.kind = 77; });
    refused("root outside", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) {
      op.kind = DTRUN_BROADCAST;
      op.root = 2;
    });
    refused("peer outside", DTRUN_INVALID_ARGUMENT, [](dtrun_op& op) {
      op.kind = DTRUN_SEND;
      op.peer = 2;
    });
    refused("size overflow", DTRUN_INVALID_ARGUMENT,
            [](dtrun_op& op) { op.count = std::numeric_limits<std::uint64_t>::max() / 2; });
    EXPECT_TRUE(rank.Do(good).ok());
    EXPECT_EQ(data, std::vector<std::int32_t>(8, 2));
  });
}

void CommunicatorsDoNotMix(const Subject& subject) {
  ThreadKv kvs[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome outcome;
      const auto first = subject.Join(&kvs[0], rank, 2, kPatience, &outcome);
      ASSERT_NE(first, nullptr) << outcome;
      const auto second = subject.Join(&kvs[1], rank, 2, kPatience, &outcome);
      ASSERT_NE(second, nullptr) << outcome;
      std::vector<float> a(100, 1);
      std::vector<float> b(100, 10);
      const dtrun_op op_a = AllreduceOp(a.data(), a.data(), 100, DTRUN_FLOAT32, DTRUN_SUM);
      const dtrun_op op_b = AllreduceOp(b.data(), b.data(), 100, DTRUN_FLOAT32, DTRUN_SUM);
      // The ranks start them in opposite order.
      const auto one = rank == 0 ? first->Start(op_a) : second->Start(op_b);
      const auto two = rank == 0 ? second->Start(op_b) : first->Start(op_a);
      EXPECT_TRUE(one->Wait().ok());
      EXPECT_TRUE(two->Wait().ok());
      EXPECT_EQ(a, std::vector<float>(100, 2));
      EXPECT_EQ(b, std::vector<float>(100, 20));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void AddRequestCases(const BackendUnderTest& backend) {
  AddCase("Requests", "MayBeWaitedForInReverse", backend, WaitedForInReverse);
  AddCase("Requests", "CompleteInTheOrderOfTheCalls", backend, CompletionFollowsTheOrderOfTheCalls);
  AddCase("Requests", "AreSeenToEndByTest", backend, TestSeesTheEnd);
  AddCase("Requests", "FinishBeforeReleaseReturns", backend, ReleaseWaitsForTheOperation);
  AddCase("Requests", "KeepTheirOutcome", backend, AnOutcomeStays);
  AddCase("Requests", "SurviveShortWaits", backend, ShortWaitsHarmNothing);
  AddCase("Requests", "MayBeWaitedForBySeveralThreads", backend, SeveralThreadsMayWait);
  AddCase("Requests", "AreRefusedWithoutHarm", backend, RefusedCallsHarmNothing);
  AddCase("Requests", "OfDifferentCommunicatorsDoNotMix", backend, CommunicatorsDoNotMix);
}

}  // namespace dtrun::conformance

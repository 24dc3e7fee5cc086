// Requests: waiting for them, and testing them.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "stopwatch.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

// A wait that ends early leaves the operation and its communicator as they were.
void ShortWaitsHarmNothing(const Subject& subject, std::uint32_t flags) {
  subject.Play(2, [=](Rank& rank) {
    dtrun_op barrier = MakeOp(DTRUN_BARRIER);
    barrier.flags = flags;
    if (rank.rank() == 1) {
      rank.Await("waited");
      EXPECT_TRUE(rank.Do(barrier).ok());
      return;
    }
    const auto pending = rank.Start(barrier);
    EXPECT_EQ(pending->Wait(nanoseconds(0)).code, DTRUN_PENDING);
    constexpr std::chrono::milliseconds kShort(50);
    {
      const Stopwatch stopwatch;
      EXPECT_EQ(pending->Wait(kShort).code, DTRUN_PENDING);
      if ((flags & DTRUN_OP_BLOCKING) == 0)
        stopwatch.ExpectBetween(kShort, kDeadlineBound, "req_wait_host with a timeout_ns of 50 ms (B8)");
    }
    bool done = true;
    EXPECT_TRUE(pending->Test(&done).ok());
    EXPECT_FALSE(done);
    rank.Tell("waited");
    EXPECT_TRUE(pending->Wait().ok());
  });
}

// The other rank comes some time after the wait has begun.
void AWaitWithoutALimitWaits(const Subject& subject) {
  constexpr std::chrono::milliseconds kLate(300);
  subject.Play(2, [=](Rank& rank) {
    float value = 1;
    if (rank.rank() == 1) {
      rank.Await("waits");
      std::this_thread::sleep_for(kLate);
      EXPECT_TRUE(rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 0, 0)).ok());
      return;
    }
    const auto pending = rank.Start(RecvOp(&value, 1, DTRUN_FLOAT32, 1, 0));
    rank.Tell("waits");
    const Outcome outcome = pending->Wait(kNoLimit);
    EXPECT_TRUE(outcome.ok()) << "of a wait without a limit, 300 ms before the other rank came: " << outcome;
    EXPECT_TRUE(pending->Wait().ok());
  });
}

// The middle of many times, so that what else the machine does matters little.
template <class Call>
nanoseconds UsualTime(Call&& call) {
  std::vector<nanoseconds> times;
  for (int i = 0; i < 31; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::steady_clock::now() - start);
  }
  std::nth_element(times.begin(), times.begin() + 15, times.end());
  return times[15];
}

// Of an operation for which the other rank has not come.
void TestingDoesNotWait(const Subject& subject, std::int32_t kind) {
  constexpr auto kLimit = std::chrono::milliseconds(5);
  if (!Has(subject.Caps().ops, kind)) GTEST_SKIP() << "the backend does not offer it";
  subject.Play(2, [&](Rank& rank) {
    float value = 1;
    const dtrun_op op = kind == DTRUN_BARRIER ? MakeOp(DTRUN_BARRIER)
                        : rank.rank() == 0    ? RecvOp(&value, 1, DTRUN_FLOAT32, 1, 0)
                                              : SendOp(&value, 1, DTRUN_FLOAT32, 0, 0);
    if (rank.rank() == 1) rank.Await("tested");
    const auto pending = rank.Start(op);
    if (rank.rank() == 0) {
      bool done = true;
      EXPECT_LT(UsualTime([&] { pending->Test(&done); }), kLimit) << "of req_test, which must not block (B8)";
      EXPECT_FALSE(done);
      EXPECT_LT(UsualTime([&] { pending->Wait(nanoseconds(0)); }), kLimit)
          << "of req_wait_host with a timeout_ns of 0, which returns at once (B8)";
      rank.Tell("tested");
    }
    EXPECT_TRUE(pending->Wait().ok());
  });
}

}  // namespace

void AddWaitCases(const BackendUnderTest& backend) {
  AddCase("Requests", "AreTestedWithoutWaiting", "B8", backend,
          [](const Subject& subject) { TestingDoesNotWait(subject, DTRUN_BARRIER); });
  AddCase("Requests", "OfMessagesAreTestedWithoutWaiting", "B8", backend,
          [](const Subject& subject) { TestingDoesNotWait(subject, DTRUN_RECV); });
  AddCase("Requests", "SurviveShortWaits", "B8", backend,
          [](const Subject& subject) { ShortWaitsHarmNothing(subject, 0); });
  AddCase("Requests", "OfMessagesAreWaitedForWithoutALimit", "B8", backend, AWaitWithoutALimitWaits);
  AddCase("Requests", "ThatBlockSurviveShortWaits", "B8, B11", backend,
          [](const Subject& subject) { ShortWaitsHarmNothing(subject, DTRUN_OP_BLOCKING); });
}

}  // namespace dtrun::conformance

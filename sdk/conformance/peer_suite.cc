// What an operation that waits learns of its peer: that it has left, that its communicator has failed, or
// that it does not take part.
#include <gtest/gtest.h>

#include <vector>

#include "stopwatch.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::chrono::milliseconds kSoon{300};

// Rank 1 fails by its own deadline and stays; rank 0 has no deadline of its own.
void AFailureElsewhereIsLearnt(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    rank.Meet("joined");  // who fails at once would end the others' comm_create (B17)
    float value = 1;
    if (rank.rank() == 2) return rank.Await("failed");
    if (rank.rank() == 1) {
      rank.Await("waits");
      dtrun_op op = RecvOp(&value, 1, DTRUN_FLOAT32, 2, 5);
      op.timeout_ns = nanoseconds(kSoon).count();
      const Outcome own = rank.Do(op);
      EXPECT_EQ(own.code, DTRUN_TIMEOUT) << own;
      return rank.Await("failed");
    }
    const auto pending = rank.Start(RecvOp(&value, 1, DTRUN_FLOAT32, 1, 6));
    ASSERT_NE(pending, nullptr);
    rank.Tell("waits");
    const Stopwatch stopwatch;
    const Outcome outcome = pending->Wait();
    stopwatch.ExpectWithin(kSoon + kDeadlineBound + kDeathBound,
                           "a receive from a rank of which the communicator has failed after 300 ms (F4)");
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_TRUE(outcome.peer == 1 || outcome.peer == 2) << outcome;
    rank.Tell("failed");
  });
}

// The receive waits before its peer leaves.
void APeerThatLeavesEndsAReceive(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("waits");
    float value = 1;
    const auto pending = rank.Start(RecvOp(&value, 1, DTRUN_FLOAT32, 1, 6));
    ASSERT_NE(pending, nullptr);
    EXPECT_EQ(pending->Wait(kSoon).code, DTRUN_PENDING);
    rank.Tell("waits");
    const Stopwatch stopwatch;
    const Outcome outcome = pending->Wait();
    stopwatch.ExpectWithin(kDestroyBound + kDeathBound, "a receive from a rank that leaves (B21, F4)");
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(outcome.peer, 1) << outcome;
  });
}

// It may have been copied.
void ALargeSendHasADeadline(const Subject& subject) {
  constexpr std::size_t kMany = 8 << 20;  // more than any buffer on the way has
  constexpr std::chrono::milliseconds kDeadline{500};
  subject.Play(2, [=](Rank& rank) {
    rank.Meet("joined");
    std::vector<float> data(kMany, 1);
    if (rank.rank() == 1) {
      rank.Await("done");
      // The sender need not wait for it while it leaves.
      if (rank.Count("copied", 0) != 1) return;
      const Outcome late = rank.Do(RecvOp(data.data(), kMany, DTRUN_FLOAT32, 0, 3));
      EXPECT_TRUE(late.ok()) << late;
      return;
    }
    dtrun_op op = SendOp(data.data(), data.size(), DTRUN_FLOAT32, 1, 3);
    op.timeout_ns = nanoseconds(kDeadline).count();
    const Stopwatch stopwatch;
    const Outcome outcome = rank.Do(op);
    stopwatch.ExpectWithin(kDeadline + kDeadlineBound,
                           "a send of 32 MiB with a deadline of 500 ms that its peer does not receive (F1)");
    EXPECT_TRUE(outcome.ok() || outcome.code == DTRUN_TIMEOUT) << outcome;
    rank.Count("copied", outcome.ok() ? 1 : 0);
    rank.Tell("done");
  });
}

}  // namespace

void AddPeerCases(const BackendUnderTest& backend) {
  AddCase("Failures", "EndWhatWaitsForARankThatHasFailed", "F4", backend, AFailureElsewhereIsLearnt);
  AddCase("Failures", "EndWhatWaitsForARankThatLeaves", "F4, B21", backend, APeerThatLeavesEndsAReceive);
  AddCase("Failures", "EndALargeSendThatNobodyReceives", "F1", backend, ALargeSendHasADeadline);
}

}  // namespace dtrun::conformance

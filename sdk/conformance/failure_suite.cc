// What goes wrong between ranks: missing, late, leaving, killed, aborted. Everything ends
// in bounded time with an error that names the culprit.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "stopwatch.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::chrono::milliseconds kShortTimeout{500};
constexpr char kUntilADeadline[] = "an operation with a deadline of 500 ms (F1)";

bool Mentions(const Outcome& outcome, const std::string& text) {
  return outcome.text.find(text) != std::string::npos;
}

void AMissingRankIsNamed(const Subject& subject) {
  subject.PlayWithoutJoining(3, [&](dtrun_kv* kv, int rank) {
    if (rank == 2) return;                                // does not come
    kv->Set("suite/begins/" + std::to_string(rank), "");  // processes may be apart by more than the timeout
    EXPECT_TRUE(
        kv->WaitFor({"suite/begins/0", "suite/begins/1"}, std::chrono::steady_clock::now() + kPatience));
    const Stopwatch stopwatch;
    Outcome outcome;
    EXPECT_EQ(subject.Join(kv, rank, 3, kShortTimeout, &outcome), nullptr);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 2")) << outcome;
    EXPECT_EQ(outcome.peer, 2);
    stopwatch.ExpectWithin(kShortTimeout + kDeadlineBound, "comm_create, which may take 500 ms (F2, B17)");
  });
}

void ASkippedCallTimesOut(const Subject& subject, std::uint32_t flags) {
  subject.Play(2, [=](Rank& rank) {
    rank.Meet("joined");  // who fails at once would end the others' comm_create (B17)
    if (rank.rank() == 1) {
      rank.Await("timed out");
      const Stopwatch stopwatch;
      const Outcome outcome = rank.Barrier();
      // A backend that compares calls has found another one there, which counts more (C9).
      if (outcome.code == DTRUN_MISMATCH) {
        EXPECT_TRUE(outcome.peer == 0 || outcome.peer == -1) << outcome;
      } else {
        EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
        EXPECT_EQ(outcome.peer, 0) << outcome;
      }
      stopwatch.ExpectWithin(kDeathBound, "a call that needs a rank that has failed (F4)");
      return;
    }
    float value = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = flags;
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const Stopwatch stopwatch;
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 1")) << outcome;
    stopwatch.ExpectBetween(kShortTimeout, kDeadlineBound, kUntilADeadline);
    // The communicator stays failed, with its first cause.
    const Outcome later = rank.Barrier();
    EXPECT_EQ(later.code, DTRUN_TIMEOUT) << later;
    rank.Tell("timed out");
  });
}

void AnUnansweredMessageTimesOut(const Subject& subject, std::uint32_t flags) {
  subject.Play(2, [=](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("timed out");
    float value = 1;
    dtrun_op op = RecvOp(&value, 1, DTRUN_FLOAT32, 1, 3);
    op.flags = flags;
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const Stopwatch stopwatch;
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 1")) << outcome;
    stopwatch.ExpectBetween(kShortTimeout, kDeadlineBound, kUntilADeadline);
    const Outcome later = rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 4));
    EXPECT_EQ(later.code, DTRUN_TIMEOUT) << "a call after a receive has failed (F3): " << later;
    rank.Tell("timed out");
  });
}

// A call with a deadline ends at it even behind one that has none.
void ADeadlineHoldsInTheQueueToo(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("done");
    float value = 1;
    const auto first = rank.Start(MakeOp(DTRUN_BARRIER));
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const Stopwatch stopwatch;
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    stopwatch.ExpectBetween(kShortTimeout, kDeadlineBound, kUntilADeadline);
    EXPECT_EQ(first->Wait().code, DTRUN_TIMEOUT);
    rank.Tell("done");
  });
}

// An operation that is not waited for ends at its deadline as well.
void ADeadlineHoldsForABlockingCallThatNobodyWaitsFor(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("done");
    float value = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = DTRUN_OP_BLOCKING;
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const Stopwatch stopwatch;
    EXPECT_EQ(rank.Start(op)->Poll().code, DTRUN_TIMEOUT);
    stopwatch.ExpectBetween(kShortTimeout, kDeadlineBound, kUntilADeadline);
    rank.Tell("done");
  });
}

void ARankThatLeftIsNamed(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    if (rank.rank() == 2) return;  // leaves
    // Where this rank's communicator fails first, the other's barrier may fail with it (F4).
    rank.Tell("past/" + std::to_string(rank.rank()));
    rank.Await("past/" + std::to_string(1 - rank.rank()));
    const Stopwatch stopwatch;
    std::vector<float> data(1 << 20, 1);
    const Outcome outcome =
        rank.Do(AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM));
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(outcome.peer, 2) << outcome;
    stopwatch.ExpectWithin(kDestroyBound + kDeathBound, "a call that needs a rank that leaves (B21, F4)");
  });
}

// Ranks that are done may go while others still talk to one another.
void LeavingEarlyHarmsNobodyElse(const Subject& subject) {
  for (int round = 0; round < 5; ++round) {
    subject.Play(3, [](Rank& rank) {
      std::vector<std::int32_t> data(100'000, rank.rank() == 0 ? 4 : 0);
      dtrun_op op = AllreduceOp(nullptr, data.data(), data.size(), DTRUN_INT32, 0);
      op.kind = DTRUN_BROADCAST;
      op.root = 0;
      EXPECT_TRUE(rank.Do(op).ok());
      EXPECT_EQ(data, std::vector<std::int32_t>(100'000, 4));
      if (rank.rank() == 0) return;
      for (std::uint32_t i = 0; i < 50; ++i) {
        const Outcome outcome = rank.rank() == 1
                                    ? rank.Do(SendOp(data.data(), data.size(), DTRUN_INT32, 2, i))
                                    : rank.Do(RecvOp(data.data(), data.size(), DTRUN_INT32, 1, i));
        EXPECT_TRUE(outcome.ok()) << outcome;
      }
    });
  }
}

void AbortEndsWhatIsBlocked(const Subject& subject, std::uint32_t flags) {
  if (!subject.CanAbort()) GTEST_SKIP() << "the backend cannot abort";
  subject.Play(2, [&](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("aborted");
    float value = 1, other = 1, from_any = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = flags;
    std::vector<std::unique_ptr<Pending>> started;
    if (Has(subject.Caps().ops, DTRUN_ALLREDUCE)) {
      started.push_back(rank.Start(op));
      started.push_back(rank.Start(MakeOp(DTRUN_BARRIER)));
    }
    started.push_back(rank.Start(RecvOp(&other, 1, DTRUN_FLOAT32, 1, 0)));
    if ((subject.Caps().features & DTRUN_CAP_ANY_SOURCE) != 0)
      started.push_back(rank.Start(RecvOp(&from_any, 1, DTRUN_FLOAT32, DTRUN_ANY_SOURCE, 1)));
    std::vector<std::thread> waiters;
    for (const auto& one : started) {
      const Pending* const pending = one.get();
      waiters.emplace_back([=] {
        const Outcome outcome = pending->Wait(kNoLimit);
        EXPECT_EQ(outcome.code, DTRUN_ABORTED) << outcome;
        EXPECT_TRUE(Mentions(outcome, "the test says so")) << outcome;
      });
    }
    // Diagnostics work while others wait.
    if (subject.table().snapshot != nullptr) {
      EXPECT_FALSE(rank.Snapshot().empty());
    }
    const Stopwatch stopwatch;
    rank.Abort("the test says so");
    rank.Abort("again");
    for (std::thread& waiter : waiters) waiter.join();
    stopwatch.ExpectWithin(kAbortBound, "what was blocked when it was aborted (F6)");
    const Outcome later = rank.Do(RecvOp(&other, 1, DTRUN_FLOAT32, 1, 0));
    EXPECT_EQ(later.code, DTRUN_ABORTED) << later;
    EXPECT_TRUE(Mentions(later, "the test says so")) << "the first reason stays (F7): " << later;
    const Outcome sent = rank.Do(SendOp(&other, 1, DTRUN_FLOAT32, 1, 0));
    EXPECT_EQ(sent.code, DTRUN_ABORTED) << "a send after an abort (F9): " << sent;
    if (Has(subject.Caps().ops, DTRUN_BARRIER)) {
      EXPECT_EQ(rank.Barrier().code, DTRUN_ABORTED);
    }
    rank.Tell("aborted");
  });
}

void AbortInTheMiddleOfATransferHangsNobody(const Subject& subject) {
  if (!subject.CanAbort()) GTEST_SKIP() << "the backend cannot abort";
  subject.Play(3, [](Rank& rank) {
    std::vector<float> data(4 << 20, 1);
    const dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM);
    // The abort of rank 0 may overtake the end of this barrier on another rank.
    Outcome outcome = rank.Barrier();
    std::unique_ptr<Pending> first;
    if (outcome.ok()) first = rank.Start(op, &outcome);
    if (rank.rank() == 0) {
      rank.Abort("mid-flight");
      rank.Tell("aborted");
    } else {
      rank.Await("aborted");
      rank.Abort("rank 0 has aborted");  // as dtrun does on every rank
    }
    const Stopwatch stopwatch;
    if (first) outcome = first->Wait();
    stopwatch.ExpectWithin(kAbortBound, "a transfer that was aborted (F6)");
    // Every rank aborts, and another one's abort may be seen first.
    const auto ended = [&](const Outcome& one) {
      const bool other = one.peer >= 0 && one.peer != rank.rank();
      return one.code == DTRUN_ABORTED || (one.code == DTRUN_REMOTE_FAILURE && other);
    };
    EXPECT_TRUE(outcome.ok() || ended(outcome)) << outcome;
    const Outcome later = rank.Do(op);
    EXPECT_TRUE(ended(later)) << later;
  });
}

// Fills buffers of which the operations have failed and were released, and expects that nothing writes to
// them.
class Released {
 public:
  explicit Released(std::size_t count) : data_(count) {}
  std::int32_t* data() { return data_.data(); }
  std::size_t count() const { return data_.size(); }
  void Fill() {
    std::ranges::fill(data_, kOurs);
    filled_ = true;
  }
  // Of a rank that has filled it: other ranks may be processes.
  void Expect(const char* what) const {
    EXPECT_TRUE(!filled_ || std::ranges::all_of(data_, [](std::int32_t value) { return value == kOurs; }))
        << what << " was written to after its operation had failed and was released (B10)";
  }

 private:
  static constexpr std::int32_t kOurs = 0x77777777;
  std::vector<std::int32_t> data_;
  bool filled_ = false;
};

// The other rank takes part as soon as the first has given up, and is given time to.
void NothingIsWrittenAfterAFailure(const Subject& subject) {
  constexpr std::size_t kCount = 300'000;
  Released small(1), large(kCount), reduced(kCount);  // after all ranks have left, too
  const auto expect_all = [&] {
    small.Expect("a receive buffer of one element");
    large.Expect("a receive buffer");
    reduced.Expect("the buffer of an allreduce");
  };
  subject.Play(2, [&](Rank& rank) {
    rank.Meet("joined");
    std::vector<std::int32_t> sent(kCount, 1);
    std::vector<dtrun_op> ops;
    if (rank.rank() == 0) {
      ops = {RecvOp(small.data(), 1, DTRUN_INT32, 1, 3), RecvOp(large.data(), kCount, DTRUN_INT32, 1, 4)};
    } else {
      ops = {SendOp(sent.data(), 1, DTRUN_INT32, 0, 3), SendOp(sent.data(), kCount, DTRUN_INT32, 0, 4)};
      rank.Await("failed");
    }
    std::int32_t* const into = rank.rank() == 0 ? reduced.data() : sent.data();
    if (Has(subject.Caps().ops, DTRUN_ALLREDUCE))
      ops.push_back(AllreduceOp(sent.data(), into, kCount, DTRUN_INT32, DTRUN_SUM));
    std::vector<std::unique_ptr<Pending>> started;
    for (dtrun_op& op : ops) {
      op.timeout_ns = nanoseconds(kShortTimeout).count();
      Outcome refusal;
      started.push_back(rank.Start(op, &refusal));  // of the late rank it may have failed
      if (rank.rank() == 0) {
        EXPECT_NE(started.back(), nullptr) << refusal;
      }
    }
    for (const auto& one : started) {
      if (one != nullptr && rank.rank() == 0) {
        EXPECT_EQ(one->Wait().code, DTRUN_TIMEOUT);
      } else if (one != nullptr) {
        one->Wait();
      }
    }
    started.clear();
    if (rank.rank() == 1) return rank.Tell("sent");
    small.Fill();
    large.Fill();
    reduced.Fill();
    rank.Tell("failed");
    rank.Await("sent");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    expect_all();
  });
  if (!testing::Test::HasFailure()) expect_all();
}

}  // namespace

void AddFailureCases(const BackendUnderTest& backend) {
  AddCase("Failures", "NameARankThatDoesNotCome", "F2, B17", backend, AMissingRankIsNamed);
  AddCase("Failures", "EndACallThatAnotherRankSkips", "F1, F3, F4, C9", backend,
          [](const Subject& subject) { ASkippedCallTimesOut(subject, 0); });
  AddCase("Failures", "EndABlockingCallThatAnotherRankSkips", "F1, F3, F4, B11, C9", backend,
          [](const Subject& subject) { ASkippedCallTimesOut(subject, DTRUN_OP_BLOCKING); });
  AddCase("Failures", "EndABlockingCallThatNobodyWaitsFor", "F1, B9, B11", backend,
          ADeadlineHoldsForABlockingCallThatNobodyWaitsFor);
  AddCase("Failures", "EndAMessageThatNobodyAnswers", "F1, F3", backend,
          [](const Subject& subject) { AnUnansweredMessageTimesOut(subject, 0); });
  AddCase("Failures", "EndABlockingMessageThatNobodyAnswers", "F1, F3, B11", backend,
          [](const Subject& subject) { AnUnansweredMessageTimesOut(subject, DTRUN_OP_BLOCKING); });
  AddCase("Failures", "KeepTheDeadlineOfAQueuedCall", "F1, F3", backend, ADeadlineHoldsInTheQueueToo);
  AddCase("Failures", "NameARankThatLeft", "F4", backend, ARankThatLeftIsNamed);
  AddCase("Failures", "DoNotFollowARankThatIsDone", "F5, B21", backend, LeavingEarlyHarmsNobodyElse);
  AddCase("Failures", "WriteNothingAfterTheyWereReported", "B10", backend, NothingIsWrittenAfterAFailure);
  AddCase("Abort", "EndsWhatIsBlocked", "F6, F7, F9, B24", backend,
          [](const Subject& subject) { AbortEndsWhatIsBlocked(subject, 0); });
  AddCase("Abort", "EndsABlockingCall", "F6, F7, F9, B11", backend,
          [](const Subject& subject) { AbortEndsWhatIsBlocked(subject, DTRUN_OP_BLOCKING); });
  AddCase("Abort", "InTheMiddleOfATransferHangsNobody", "F6, F8", backend,
          AbortInTheMiddleOfATransferHangsNobody);
}

}  // namespace dtrun::conformance

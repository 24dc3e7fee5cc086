// What goes wrong between ranks: missing, late, leaving, killed, aborted. Everything ends
// in bounded time with an error that names the culprit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "own_process.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// A failure that must come long before kPatience.
constexpr auto kSoon = std::chrono::seconds(20);
constexpr auto kShortTimeout = std::chrono::seconds(1);

bool Mentions(const Outcome& outcome, const std::string& text) {
  return outcome.text.find(text) != std::string::npos;
}

void AMissingRankIsNamed(const Subject& subject) {
  const auto start = Clock::now();
  subject.PlayWithoutJoining(3, [&](dtrun_kv* kv, int rank) {
    if (rank == 2) return;  // does not come
    Outcome outcome;
    EXPECT_EQ(subject.Join(kv, rank, 3, kShortTimeout, &outcome), nullptr);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 2")) << outcome;
    EXPECT_EQ(outcome.peer, 2);
  });
  EXPECT_LT(Clock::now() - start, kSoon);
}

void ASkippedCallTimesOut(const Subject& subject, std::uint32_t flags) {
  subject.Play(2, [=](Rank& rank) {
    if (rank.rank() == 1) {
      rank.Await("timed out");
      const auto start = Clock::now();
      const Outcome outcome = rank.Barrier();
      EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
      EXPECT_EQ(outcome.peer, 0) << outcome;
      EXPECT_LT(Clock::now() - start, kSoon);
      return;
    }
    float value = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = flags;
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const auto start = Clock::now();
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 1")) << outcome;
    EXPECT_GE(Clock::now() - start, kShortTimeout);
    EXPECT_LT(Clock::now() - start, kSoon);
    // The communicator stays failed, with its first cause.
    const Outcome later = rank.Barrier();
    EXPECT_EQ(later.code, DTRUN_TIMEOUT) << later;
    rank.Tell("timed out");
  });
}

void AnUnansweredMessageTimesOut(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    if (rank.rank() == 1) return rank.Await("timed out");
    float value = 1;
    dtrun_op op = RecvOp(&value, 1, DTRUN_FLOAT32, 1, 3);
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_TRUE(Mentions(outcome, "rank 1")) << outcome;
    rank.Tell("timed out");
  });
}

// A call with a deadline ends at it even behind one that has none.
void ADeadlineHoldsInTheQueueToo(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    if (rank.rank() == 1) return rank.Await("done");
    float value = 1;
    const auto first = rank.Start(MakeOp(DTRUN_BARRIER));
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const auto start = Clock::now();
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_LT(Clock::now() - start, kSoon);
    EXPECT_EQ(first->Wait().code, DTRUN_TIMEOUT);
    rank.Tell("done");
  });
}

// An operation that is not waited for ends at its deadline as well.
void ADeadlineHoldsForABlockingCallThatNobodyWaitsFor(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    if (rank.rank() == 1) return rank.Await("done");
    float value = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = DTRUN_OP_BLOCKING;
    op.timeout_ns = nanoseconds(kShortTimeout).count();
    const auto start = Clock::now();
    EXPECT_EQ(rank.Start(op)->Poll().code, DTRUN_TIMEOUT);
    EXPECT_LT(Clock::now() - start, kSoon);
    rank.Tell("done");
  });
}

void ARankThatLeftIsNamed(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    if (rank.rank() == 2) return;  // leaves
    const auto start = Clock::now();
    std::vector<float> data(1 << 20, 1);
    const Outcome outcome =
        rank.Do(AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM));
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(outcome.peer, 2) << outcome;
    EXPECT_LT(Clock::now() - start, kSoon);
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

bool CanAbort(const Subject& subject) { return (subject.Caps().flags & DTRUN_CAP_ABORT) != 0; }

void AbortEndsWhatIsBlocked(const Subject& subject, std::uint32_t flags) {
  if (!CanAbort(subject)) GTEST_SKIP() << "the backend cannot abort";
  subject.Play(2, [&](Rank& rank) {
    if (rank.rank() == 1) return rank.Await("aborted");
    float value = 1;
    float other = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM);
    op.flags = flags;
    std::vector<std::unique_ptr<Pending>> started;
    if (Has(subject.Caps().ops, DTRUN_ALLREDUCE)) {
      started.push_back(rank.Start(op));
      started.push_back(rank.Start(MakeOp(DTRUN_BARRIER)));
    }
    started.push_back(rank.Start(RecvOp(&other, 1, DTRUN_FLOAT32, 1, 0)));
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
    const auto start = Clock::now();
    rank.Abort("the test says so");
    rank.Abort("again");
    for (std::thread& waiter : waiters) waiter.join();
    EXPECT_LT(Clock::now() - start, kSoon);
    const Outcome later = rank.Do(RecvOp(&other, 1, DTRUN_FLOAT32, 1, 0));
    EXPECT_EQ(later.code, DTRUN_ABORTED) << later;
    EXPECT_TRUE(Mentions(later, "the test says so")) << "the first reason stays (F7): " << later;
    if (Has(subject.Caps().ops, DTRUN_BARRIER)) {
      EXPECT_EQ(rank.Barrier().code, DTRUN_ABORTED);
    }
    rank.Tell("aborted");
  });
}

void AbortInTheMiddleOfATransferHangsNobody(const Subject& subject) {
  if (!CanAbort(subject)) GTEST_SKIP() << "the backend cannot abort";
  const auto start = Clock::now();
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
    if (first) outcome = first->Wait();
    const auto ended = [](const Outcome& one) {
      return one.code == DTRUN_ABORTED || (one.code == DTRUN_REMOTE_FAILURE && one.peer == 0);
    };
    EXPECT_TRUE(outcome.ok() || ended(outcome)) << outcome;
    const Outcome later = rank.Do(op);
    EXPECT_TRUE(ended(later)) << later;
  });
  EXPECT_LT(Clock::now() - start, kPatience);
}

// A rank in a process of its own.
struct Player {
  const BackendUnderTest& backend;
  std::string folder;
  int size;
  int victim;

  // 0 when all it expects came true. The victim does not return.
  int Play(int rank) const {
    const Subject subject(backend);
    FolderKv kv(folder);
    Outcome outcome;
    const auto member = subject.Join(&kv, rank, size, kPatience, &outcome);
    if (member == nullptr) return Complain(1, rank, outcome);
    std::vector<float> data(2 << 20, 1);
    const dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_MAX);
    for (int call = 0; call < 1000 && outcome.ok(); ++call) {
      const auto pending = member->Start(op, &outcome);
      if (call == 3 && rank == victim) raise(SIGKILL);  // somewhere in the middle of the call
      if (pending) outcome = pending->Wait();
    }
    if (outcome.code != DTRUN_REMOTE_FAILURE) return Complain(2, rank, outcome);
    if (outcome.peer != victim) return Complain(3, rank, outcome);
    for (const auto& [peer, text] : TakePeerReports()) {
      if (peer == victim && !text.empty()) return 0;
    }
    std::cerr << "rank " << rank << ": the backend made no report_peer for the victim, rank " << victim
              << std::endl;
    return 4;
  }

  static int Complain(int code, int rank, const Outcome& outcome) {
    std::cerr << "rank " << rank << ", check " << code << ": " << outcome << std::endl;
    return code;
  }
};

void AKilledRankIsNamed(const BackendUnderTest& backend) {
  constexpr int kSize = 3;
  constexpr int kVictim = 1;
  const char* const given = std::getenv("DTRUN_CONFORMANCE_FOLDER");  // the caller that sets it removes it
  const std::filesystem::path where = given == nullptr ? std::filesystem::temp_directory_path() : given;
  std::string folder = (where / "dtrun-conformance-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<pid_t> children;
  const auto start = Clock::now();
  for (int rank = 0; rank < kSize; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ClaimProcess();
      int code = 5;
      try {
        code = Player{backend, folder, kSize, kVictim}.Play(rank);
      } catch (const std::exception& error) {
        std::cerr << "rank " << rank << ": " << error.what() << std::endl;
      }
      _exit(code);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < kSize; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0),
              children[static_cast<std::size_t>(rank)]);
    if (rank == kVictim) {
      EXPECT_TRUE(WIFSIGNALED(status));
    } else {
      EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " died of signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0) << "rank " << rank;
    }
  }
  EXPECT_LT(Clock::now() - start, kPatience);
  std::filesystem::remove_all(folder);
}

}  // namespace

void AddFailureCases(const BackendUnderTest& backend) {
  AddCase("Failures", "NameARankThatDoesNotCome", "F2, B17", backend, AMissingRankIsNamed);
  AddCase("Failures", "EndACallThatAnotherRankSkips", "F1, F3, F4", backend,
          [](const Subject& subject) { ASkippedCallTimesOut(subject, 0); });
  AddCase("Failures", "EndABlockingCallThatAnotherRankSkips", "F1, F3, F4, B11", backend,
          [](const Subject& subject) { ASkippedCallTimesOut(subject, DTRUN_OP_BLOCKING); });
  AddCase("Failures", "EndABlockingCallThatNobodyWaitsFor", "F1, B9, B11", backend,
          ADeadlineHoldsForABlockingCallThatNobodyWaitsFor);
  AddCase("Failures", "EndAMessageThatNobodyAnswers", "F1", backend, AnUnansweredMessageTimesOut);
  AddCase("Failures", "KeepTheDeadlineOfAQueuedCall", "F1, F3", backend, ADeadlineHoldsInTheQueueToo);
  AddCase("Failures", "NameARankThatLeft", "F4", backend, ARankThatLeftIsNamed);
  AddCase("Failures", "DoNotFollowARankThatIsDone", "F5, B21", backend, LeavingEarlyHarmsNobodyElse);
  AddCase("Failures", "NameARankThatWasKilled", "F4, H11", backend, [=](const Subject& subject) {
    if (!subject.InOneProcess()) GTEST_SKIP() << "the launcher would end the whole job";
    if (backend.most_ranks > 0 && backend.most_ranks < 3)
      GTEST_SKIP() << "needs 3 ranks, of which " << backend.most_ranks << " are allowed";
    AKilledRankIsNamed(backend);
  });
  AddCase("Abort", "EndsWhatIsBlocked", "F6, F7, F9, B24", backend,
          [](const Subject& subject) { AbortEndsWhatIsBlocked(subject, 0); });
  AddCase("Abort", "EndsABlockingCall", "F6, F7, F9, B11", backend,
          [](const Subject& subject) { AbortEndsWhatIsBlocked(subject, DTRUN_OP_BLOCKING); });
  AddCase("Abort", "InTheMiddleOfATransferHangsNobody", "F6, F8", backend,
          AbortInTheMiddleOfATransferHangsNobody);
}

}  // namespace dtrun::conformance

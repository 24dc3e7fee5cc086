// Ranks that die, stop or are slow, at each step: before the others have joined, in a transfer, between calls
// and while they leave. Each rank is a process.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "processes.h"
#include "stopwatch.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::uint64_t kMany = 2 << 20;  // elements: more than any buffer on the way has
constexpr std::chrono::milliseconds kDeadline{500};

// Another space, in which this process dies when the plugin uses it.
class FatalKv final : public dtrun_kv {
 public:
  explicit FatalKv(dtrun_kv* whole) : whole_(whole) {}
  // From now on; `reading`: only a look at what others have set.
  void Arm(bool reading) {
    read_is_fatal_ = true;
    write_is_fatal_ = !reading;
  }
  void Set(const std::string& key, const std::string& value) override {
    if (write_is_fatal_) raise(SIGKILL);
    whole_->Set(key, value);
  }
  std::optional<std::string> TryGet(const std::string& key) override {
    if (read_is_fatal_) raise(SIGKILL);
    return whole_->TryGet(key);
  }
  bool Erase(const std::string& key) override { return whole_->Erase(key); }
  dtrun_kv& Making() override { return whole_->Making(); }
  bool Update(const std::string& key, Change change, void* context) override {
    if (write_is_fatal_) raise(SIGKILL);
    return whole_->Update(key, change, context);
  }
  bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) override {
    if (read_is_fatal_) raise(SIGKILL);
    return whole_->WaitFor(keys, deadline);
  }

 private:
  dtrun_kv* const whole_;
  bool read_is_fatal_ = false, write_is_fatal_ = false;
};

void ExpectBlamed(const Outcome& outcome, int victim) {
  EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
  EXPECT_EQ(outcome.peer, victim) << "the rank that is to blame (F4): " << outcome;
}

// Calls until one fails, which it must.
Outcome CallUntilAFailure(Rank& rank, std::uint64_t count, int victim) {
  std::vector<float> data(count, 1);
  const dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_MAX);
  Outcome outcome;
  for (int call = 0; call < 1000 && outcome.ok(); ++call) {
    const Stopwatch stopwatch;
    const auto pending = rank.Start(op, &outcome);
    if (call == 3 && rank.rank() == victim) raise(SIGKILL);  // somewhere in the middle of the call
    if (pending) outcome = pending->Wait();
    if (!outcome.ok()) stopwatch.ExpectWithin(kDeathBound, "a call that needs a rank that was killed (F4)");
  }
  return outcome;
}

void TryAKilledRank(const BackendUnderTest& backend, int size, int victim, std::uint64_t count) {
  SCOPED_TRACE("rank " + std::to_string(victim) + " of " + std::to_string(size) +
               " is killed in an allreduce of " + std::to_string(count) + " elements");
  PlayInProcesses(backend, size, {victim}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    Outcome outcome;
    const auto rank = subject.Join(kv, number, size, kPatience, &outcome);
    ASSERT_NE(rank, nullptr) << outcome;
    ExpectBlamed(CallUntilAFailure(*rank, count, victim), victim);
    const auto reports = TakePeerReports();
    EXPECT_TRUE(std::ranges::any_of(
        reports, [=](const auto& one) { return one.first == victim && !one.second.empty(); }))
        << "the backend made no report_peer for rank " << victim << ", which was killed (H11)";
  });
}

// Of one place among three, and others of larger worlds; with little and with much on the way.
void AKilledRankIsNamed(const BackendUnderTest& backend) {
  struct One {
    int size, victim;
    std::uint64_t count;
  };
  std::vector<One> all = {{3, 1, kMany}, {5, 0, 1}, {5, 2, kMany}, {5, 4, 1003}};
  for (const int size : backend.wide ? std::vector{2, 3, 4, 5, 7} : std::vector<int>{}) {
    for (int victim = 0; victim < size; ++victim) {
      for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{100'003}, kMany})
        all.push_back({size, victim, count});
    }
  }
  for (const One& one : all) {
    if (ReasonAgainstProcesses(backend, one.size).empty() && !testing::Test::HasFailure())
      TryAKilledRank(backend, one.size, one.victim, one.count);
  }
}

// Each of the others waits for a message of the one that has died.
void ExpectNoMessageOf(Rank& rank, int victim) {
  const Stopwatch stopwatch;
  float value = 0;
  const Outcome outcome = rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, victim, 0));
  stopwatch.ExpectWithin(kDeathBound, "a message of a rank that was killed (F4)");
  ExpectBlamed(outcome, victim);
}

// It has told the others where it is, and dies before it has looked where they are. Who connects later finds
// out at the first message.
void ARankThatDiesWhileItJoins(const BackendUnderTest& backend) {
  constexpr int kVictim = 1;
  PlayInProcesses(backend, 3, {kVictim}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    FatalKv fatal(kv);
    if (number == kVictim) fatal.Arm(true);
    const Stopwatch stopwatch;
    Outcome outcome;
    const auto rank = subject.Join(&fatal, number, 3, 2 * kDeadline, &outcome);
    if (number == kVictim) raise(SIGKILL);
    stopwatch.ExpectWithin(2 * kDeadline + kDeadlineBound, "comm_create, which may take 1 s (F2, B17)");
    if (rank != nullptr) return ExpectNoMessageOf(*rank, kVictim);
    EXPECT_TRUE(outcome.code == DTRUN_TIMEOUT || outcome.code == DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(outcome.peer, kVictim) << outcome;
  });
}

void ARankThatDiesBetweenCalls(const BackendUnderTest& backend) {
  const int size = ReasonAgainstProcesses(backend, 5).empty() ? 5 : 3, victim = size - 2;
  PlayInProcesses(backend, size, {victim}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    Outcome outcome;
    const auto rank = subject.Join(kv, number, size, kPatience, &outcome);
    ASSERT_NE(rank, nullptr) << outcome;
    rank->Meet("joined");
    if (number == victim) raise(SIGKILL);
    ExpectNoMessageOf(*rank, victim);
  });
}

void ARankThatDiesWhileItLeaves(const BackendUnderTest& backend) {
  constexpr int kVictim = 2;
  PlayInProcesses(backend, 3, {kVictim}, [=](const Subject& subject, dtrun_kv* kv, int number) {
    FatalKv fatal(kv);
    Outcome outcome;
    auto rank = subject.Join(&fatal, number, 3, kPatience, &outcome);
    ASSERT_NE(rank, nullptr) << outcome;
    rank->Meet("joined");
    if (number == kVictim) {
      fatal.Arm(false);
      rank.reset();
      raise(SIGKILL);
    }
    ExpectNoMessageOf(*rank, kVictim);
  });
}

// A call ends at its deadline also when a rank stops in the middle of it. The one that fails first may be
// what the others notice.
void ACallWithAStoppedRank(const BackendUnderTest& backend) {
  constexpr int kVictim = 1;
  PlayInProcesses(
      backend, 3, {.rank = kVictim, .killed = false}, [=](const Subject& subject, dtrun_kv* kv, int number) {
        Outcome outcome;
        const auto rank = subject.Join(kv, number, 3, kPatience, &outcome);
        ASSERT_NE(rank, nullptr) << outcome;
        std::vector<float> data(4 * kMany, 1);
        rank->Meet("joined");
        dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM);
        op.timeout_ns = nanoseconds(kDeadline).count();
        const Stopwatch stopwatch;
        const auto pending = rank->Start(op, &outcome);
        if (number == kVictim) raise(SIGSTOP);
        if (pending) outcome = pending->Wait();
        if (number == kVictim) return;  // which may have been done before it stopped
        stopwatch.ExpectWithin(kDeadline + kDeadlineBound,
                               "a call with a deadline of 500 ms, of which a rank stops (F1)");
        EXPECT_TRUE(outcome.code == DTRUN_TIMEOUT || outcome.code == DTRUN_REMOTE_FAILURE) << outcome;
        EXPECT_NE(outcome.text.find("rank "), std::string::npos) << outcome;
      });
}

void AMessageOfAStoppedRank(const BackendUnderTest& backend) {
  constexpr int kVictim = 1;
  PlayInProcesses(backend, 2, {.rank = kVictim, .killed = false},
                  [=](const Subject& subject, dtrun_kv* kv, int number) {
                    Outcome outcome;
                    const auto rank = subject.Join(kv, number, 2, kPatience, &outcome);
                    ASSERT_NE(rank, nullptr) << outcome;
                    std::vector<float> sent(4 * kMany, 1), got(4 * kMany);
                    rank->Meet("joined");
                    if (number == kVictim) raise(SIGSTOP);
                    if (number == kVictim) return;
                    dtrun_op send = SendOp(sent.data(), sent.size(), DTRUN_FLOAT32, kVictim, 1);
                    dtrun_op receive = RecvOp(got.data(), got.size(), DTRUN_FLOAT32, kVictim, 1);
                    send.timeout_ns = receive.timeout_ns = nanoseconds(kDeadline).count();
                    const Stopwatch stopwatch;
                    const auto sending = rank->Start(send);
                    outcome = rank->Do(receive);
                    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
                    EXPECT_EQ(outcome.peer, kVictim) << outcome;
                    EXPECT_NE(outcome.text.find("rank 1"), std::string::npos) << outcome;
                    if (sending) outcome = sending->Wait();  // which may have been copied
                    EXPECT_TRUE(outcome.ok() || outcome.code == DTRUN_TIMEOUT) << outcome;
                    stopwatch.ExpectBetween(kDeadline, kDeadlineBound,
                                            "messages with a deadline of 500 ms, of a rank that stops (F1)");
                  });
}

// A rank that stops for a moment, and goes on, harms nothing.
void ASlowRankIsWaitedFor(const BackendUnderTest& backend) {
  constexpr int kVictim = 1;
  PlayInProcesses(
      backend, 3, {kVictim, false, std::chrono::milliseconds(1000)},
      [=](const Subject& subject, dtrun_kv* kv, int number) {
        Outcome outcome;
        const auto rank = subject.Join(kv, number, 3, kPatience, &outcome);
        ASSERT_NE(rank, nullptr) << outcome;
        for (int call = 0; call < 6; ++call) {
          std::vector<float> data(call % 2 == 0 ? kMany : 3, 1);
          dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM);
          op.timeout_ns = kPatience.count();
          const auto pending = rank->Start(op, &outcome);
          if (number == kVictim && call == 2) raise(SIGSTOP);
          if (pending) outcome = pending->Wait();
          ASSERT_TRUE(outcome.ok()) << "call " << call << ": " << outcome;
          ASSERT_TRUE(std::ranges::all_of(data, [](float value) { return value == 3; })) << "call " << call;
        }
      });
}

std::function<void()> WithRanks(int size, const BackendUnderTest& backend,
                                void (*body)(const BackendUnderTest&)) {
  return [=] {
    const std::string reason = ReasonAgainstProcesses(backend, size);
    if (!reason.empty()) GTEST_SKIP() << reason;
    body(backend);
  };
}

}  // namespace

void AddFaultCases(const BackendUnderTest& backend) {
  AddCase("Failures", "NameARankThatWasKilled", "F4, H11", backend,
          WithRanks(3, backend, AKilledRankIsNamed));
  AddCase("Faults", "NameARankThatDiesWhileItJoins", "F2, B17", backend,
          WithRanks(3, backend, ARankThatDiesWhileItJoins));
  AddCase("Faults", "NameARankThatDiesBetweenCalls", "F4", backend,
          WithRanks(3, backend, ARankThatDiesBetweenCalls));
  AddCase("Faults", "NameARankThatDiesWhileItLeaves", "F4, B21", backend,
          WithRanks(3, backend, ARankThatDiesWhileItLeaves));
  AddCase("Faults", "EndACallWithARankThatStops", "F1, B9", backend,
          WithRanks(3, backend, ACallWithAStoppedRank));
  AddCase("Faults", "EndAMessageOfARankThatStops", "F1, B9", backend,
          WithRanks(2, backend, AMessageOfAStoppedRank));
  AddCase("Faults", "WaitForARankThatIsSlow", "F1, F4", backend, WithRanks(3, backend, ASlowRankIsWaitedFor));
}

}  // namespace dtrun::conformance

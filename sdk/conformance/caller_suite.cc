// What a caller may do and dtrun itself does not: give no error, a long reason, the longest time limit, hosts
// that it does not know; and look at an outcome again after a failure.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>

#include "dtrun/abi/structs.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr std::chrono::milliseconds kUnansweredLimit{500};

// A receive that nothing answers.
dtrun_op Unanswered(float* value) {
  dtrun_op op = RecvOp(value, 1, DTRUN_FLOAT32, 1, 0);
  op.timeout_ns = nanoseconds(kUnansweredLimit).count();
  return op;
}

void FailuresNeedNoError(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) {
    rank.Meet("joined");  // who fails at once would end the other's comm_create (B17)
    if (rank.rank() == 1) return rank.Await("failed");
    const dtrun_backend& table = subject.table();
    dtrun_request* request = nullptr;
    float value = 0;
    dtrun_op op = Unanswered(&value);
    op.flags = 1U << 31;
    EXPECT_EQ(table.enqueue(rank.raw(), &op, nullptr, &request, nullptr), DTRUN_UNSUPPORTED);
    op.flags = 0;
    ASSERT_EQ(table.enqueue(rank.raw(), &op, nullptr, &request, nullptr), DTRUN_PENDING);
    EXPECT_EQ(table.req_wait_host(request, kPatience.count(), nullptr), DTRUN_TIMEOUT);
    EXPECT_EQ(table.req_test(request, nullptr), DTRUN_TIMEOUT);
    table.req_release(request);
    dtrun_request* none = nullptr;
    const dtrun_status later = table.enqueue(rank.raw(), &op, nullptr, &none, nullptr);
    EXPECT_EQ(later == DTRUN_PENDING ? table.req_wait_host(none, kPatience.count(), nullptr) : later,
              DTRUN_TIMEOUT);
    if (later == DTRUN_PENDING) table.req_release(none);
    dtrun_abort_params params;
    DTRUN_INIT(params);
    if (subject.CanAbort()) {
      EXPECT_EQ(table.comm_abort(rank.raw(), &params, nullptr), DTRUN_OK);
    }
    rank.Tell("failed");
  });
}

// Its end may be cut, between two characters: every failure is looked at for UTF-8 (E5).
// `begin`: odd and even numbers of bytes, so that no place to cut is always between two characters.
void PlayWithALongReason(const Subject& subject, const std::string& begin) {
  subject.Play(2, [&](Rank& rank) {
    rank.Meet("joined");
    if (rank.rank() == 1) return rank.Await("aborted");
    float value = 0;
    const auto running = rank.Start(RecvOp(&value, 1, DTRUN_FLOAT32, 1, 0));
    ASSERT_NE(running, nullptr);
    std::string reason = begin;
    for (int i = 0; i < 2000; ++i) reason += "\u00e9";
    rank.Abort(reason);
    for (const Outcome& outcome : {running->Wait(), rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))}) {
      EXPECT_EQ(outcome.code, DTRUN_ABORTED) << outcome;
      EXPECT_NE(outcome.text.find(begin + "\u00e9\u00e9"), std::string::npos) << outcome;
    }
    rank.Tell("aborted");
  });
}

void AReasonMayBeLong(const Subject& subject) {
  if (!subject.CanAbort()) GTEST_SKIP() << "the backend cannot abort";
  for (const char* begin : {"because", "because "}) PlayWithALongReason(subject, begin);
}

void ATimeLimitMayBeAnyNumber(const Subject& subject) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  subject.Play(2, [&](Rank& rank) {
    if (rank.rank() == 1) rank.Await("started");
    float got = 0, sum = 1;
    const float sent = 7;
    dtrun_op message =
        rank.rank() == 0 ? RecvOp(&got, 1, DTRUN_FLOAT32, 1, 0) : SendOp(&sent, 1, DTRUN_FLOAT32, 0, 0);
    message.timeout_ns = kLongest;
    const auto moved = rank.Start(message);
    dtrun_op collective = AllreduceOp(&sum, &sum, 1, DTRUN_FLOAT32, DTRUN_SUM);
    collective.timeout_ns = kLongest;
    const bool reduces = Has(subject.Caps().ops, DTRUN_ALLREDUCE);
    const auto reduced = reduces ? rank.Start(collective) : nullptr;
    if (rank.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a time limit of the past is over
      rank.Tell("started");
    }
    ASSERT_NE(moved, nullptr);
    const Outcome outcome = moved->Wait(nanoseconds(kLongest));
    EXPECT_TRUE(outcome.ok()) << "a message with a time limit of 2^63 - 1 ns (B4): " << outcome;
    if (reduces) {
      ASSERT_NE(reduced, nullptr);
      const Outcome of_sum = reduced->Wait(nanoseconds(kLongest));
      EXPECT_TRUE(of_sum.ok()) << "an allreduce with a time limit of 2^63 - 1 ns (B4): " << of_sum;
    }
  });
}

void HostsMayBeUnknown(const Subject& subject) {
  subject.PlayWithoutJoining(2, [&](dtrun_kv* kv, int rank) {
    Outcome outcome;
    const auto member = subject.Join(kv, rank, 2, kPatience, &outcome, Subject::Hosts::kUnknown);
    ASSERT_NE(member, nullptr) << "comm_create without `hosts`: " << outcome;
    MakeSomeCalls(subject, *member);
  });
}

void AnOutcomeStaysAfterAFailure(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) {
    float got = 0, sum = 1;
    const float sent = 7;
    std::vector<std::unique_ptr<Pending>> ended;
    if (rank.rank() == 1) rank.Await("started");  // so that the other has requests
    ended.push_back(rank.Start(rank.rank() == 0 ? RecvOp(&got, 1, DTRUN_FLOAT32, 1, 0)
                                                : SendOp(&sent, 1, DTRUN_FLOAT32, 0, 0)));
    if (Has(subject.Caps().ops, DTRUN_ALLREDUCE))
      ended.push_back(rank.Start(AllreduceOp(&sum, &sum, 1, DTRUN_FLOAT32, DTRUN_SUM)));
    if (rank.rank() == 0) rank.Tell("started");
    for (const auto& one : ended) {
      ASSERT_NE(one, nullptr);
      EXPECT_TRUE(one->Wait().ok());
    }
    const auto expect_same = [&](const char* after) {
      for (const auto& one : ended) {
        for (const Outcome& outcome : {one->Wait(), one->Wait(nanoseconds(0)), one->Poll()})
          EXPECT_TRUE(outcome.ok()) << "an outcome has changed after " << after << " (B7, F7): " << outcome;
      }
    };
    if (rank.rank() == 1) return rank.Await("failed");
    float value = 0;
    EXPECT_EQ(rank.Do(Unanswered(&value)).code, DTRUN_TIMEOUT);
    expect_same("a failure");
    if (subject.CanAbort()) rank.Abort("the test says so");
    expect_same("an abort");
    rank.Tell("failed");
  });
}

}  // namespace

void AddCallerCases(const BackendUnderTest& backend) {
  AddCase("Callers", "NeedGiveNoError", "E3", backend, FailuresNeedNoError);
  AddCase("Callers", "MayGiveALongReason", "E5, F6", backend, AReasonMayBeLong);
  AddCase("Callers", "MayGiveTheLongestTimeLimit", "B4, F1", backend, ATimeLimitMayBeAnyNumber);
  AddCase("Callers", "NeedNotKnowTheHosts", "B18", backend, HostsMayBeUnknown);
  AddCase("Callers", "MayLookAgainAfterAFailure", "B7, F7", backend, AnOutcomeStaysAfterAFailure);
}

}  // namespace dtrun::conformance

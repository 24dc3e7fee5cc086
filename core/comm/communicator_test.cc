#include "core/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Communicator = testing::CommunicatorTest;

TEST_F(Communicator, NumbersCollectivesFromOneAndLeavesMessagesOut) {
  for (const std::int32_t kind : {DTRUN_ALLREDUCE, DTRUN_SEND, DTRUN_BARRIER, DTRUN_RECV, DTRUN_ALLREDUCE}) {
    EXPECT_EQ(Run(Op(kind)), DTRUN_OK) << error_.message;
  }
  std::vector<std::uint64_t> numbers;
  for (const dtrun_op& op : fake_.ops) numbers.push_back(op.sequence);
  EXPECT_THAT(numbers, ElementsAre(1, 0, 2, 0, 3));
  EXPECT_EQ(fake_.ops[0].timeout_ns, 5'000'000'000);
  EXPECT_EQ(fake_.released, 5);
}

TEST_F(Communicator, CountsACallWithoutElementsButDoesNotBotherTheBackend) {
  EXPECT_EQ(Run(Op(DTRUN_ALLREDUCE, 0)), DTRUN_OK);
  dtrun_work* work = Begin(Op(DTRUN_ALLREDUCE, 0));
  std::int32_t done = 0;
  EXPECT_EQ(Comm().Test(*work, &done, nullptr), DTRUN_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(Comm().Wait(*work, 0, nullptr), DTRUN_OK);
  Comm().Release(work);
  EXPECT_THAT(fake_.ops, IsEmpty());
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(fake_.ops[0].sequence, 3u);
}

TEST_F(Communicator, TellsTheBackendWhichCallsWillBeWaitedForAtOnce) {
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  dtrun_op op = Op();
  op.flags = ~0u;
  Comm().Release(Begin(op));
  EXPECT_EQ(fake_.ops.at(0).flags, std::uint32_t{DTRUN_OP_BLOCKING});
  EXPECT_EQ(fake_.ops.at(1).flags, 0u);
}

TEST_F(Communicator, PassesOnWhatOnlyTheRootHas) {
  dtrun_op op = Op(DTRUN_REDUCE);
  op.reduce = DTRUN_SUM;
  op.root = 1;
  EXPECT_EQ(Run(op), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.ops.back().recv, nullptr) << "this rank is not the root";
  op.root = 0;
  EXPECT_EQ(Run(op), DTRUN_OK) << error_.message;
  EXPECT_EQ(fake_.ops.back().recv, b_);
}

TEST_F(Communicator, KeepsNoPointerToTheArraysOfARunningOperation) {
  fake_.complete_at_once = false;
  dtrun_op op = Op(DTRUN_ALLGATHERV, 0);
  dtrun_work* work = nullptr;
  {
    const std::vector<std::uint64_t> counts = {2, 3};
    op.recv_counts = counts.data();
    work = Begin(op);
    EXPECT_EQ(fake_.ops.back().recv_counts, counts.data());
  }
  fake_.Complete(0, DTRUN_VENDOR, "the link is down");
  EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_VENDOR);
  EXPECT_THAT(error_.message, HasSubstr("allgatherv #1 on 'world' (float32 x 5): the link is down"));
  Comm().Release(work);
}

TEST_F(Communicator, RefusesBadArgumentsWithoutCountingThem) {
  dtrun_op bad = Op();
  bad.send = nullptr;
  EXPECT_EQ(Run(bad), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(fake_.ops.at(0).sequence, 1u);
}

TEST_F(Communicator, KnowsNoPeerThatIsNoneOfItsRanks) {
  fake_.enqueue_status = DTRUN_REMOTE_FAILURE;
  fake_.peer = 9999;
  EXPECT_EQ(Run(Op()), DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(error_.peer, -1);
  EXPECT_THAT(reports_, ElementsAre("comm.peer_failed of -1"));
}

TEST_F(Communicator, KeepsTheFirstFailureAndReportsItOnce) {
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  fake_.enqueue_status = DTRUN_REMOTE_FAILURE;
  fake_.text = "rank 1 closed the connection";
  fake_.peer = 1;
  EXPECT_EQ(Run(Op()), DTRUN_REMOTE_FAILURE);
  const std::string text = "allreduce #2 on 'world' (float32 x 2, sum): rank 1 closed the connection";
  EXPECT_EQ(error_.message, text);
  EXPECT_EQ(error_.peer, 1);
  EXPECT_EQ(error_.vendor_code, 99);
  EXPECT_STREQ(error_.vendor_domain, "fake");
  fake_.enqueue_status = DTRUN_OK;
  EXPECT_EQ(Run(Op(DTRUN_BARRIER)), DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(error_.message, text);
  EXPECT_EQ(Run(Op(DTRUN_ALLREDUCE, 0)), DTRUN_REMOTE_FAILURE);
  EXPECT_EQ(fake_.ops.size(), 2u);
  EXPECT_THAT(reports_, ElementsAre("comm.peer_failed of 1"));
  const Error known = Error::LastCopied(error_);
  EXPECT_EQ(known.Id(), "comm.peer_failed");
  EXPECT_EQ(known.Ranks(), std::vector<int>{1});
  EXPECT_EQ(known.Arg("call"), "allreduce");
  EXPECT_EQ(known.Arg("communicator"), "world");
}

TEST_F(Communicator, StaysUsableWhenTheBackendRefusesAnArgument) {
  fake_.enqueue_status = DTRUN_UNSUPPORTED;
  EXPECT_EQ(Run(Op()), DTRUN_UNSUPPORTED);
  fake_.enqueue_status = DTRUN_OK;
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(fake_.ops.back().sequence, 1u);
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(Communicator, SaysWhatFailedWhileItWaited) {
  fake_.complete_at_once = false;
  dtrun_work* work = Begin();
  dtrun_work* later = Begin(Op(DTRUN_BARRIER));
  fake_.Complete(0, DTRUN_VENDOR, "the link is down");
  fake_.Complete(1, DTRUN_TIMEOUT, "too late", 1);
  EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_VENDOR);
  EXPECT_THAT(error_.message, HasSubstr("allreduce #1 on 'world' (float32 x 2, sum): the link is down"));
  EXPECT_EQ(Comm().Wait(*later, -1, &error_), DTRUN_VENDOR) << "the first cause wins";
  Comm().Release(work);
  Comm().Release(later);
  EXPECT_THAT(reports_, IsEmpty()) << "no peer and no time is to blame";
}

TEST_F(Communicator, LeavesAnOperationAliveThatOutlastsItsWaiter) {
  fake_.complete_at_once = false;
  dtrun_work* work = Begin();
  EXPECT_EQ(Comm().Wait(*work, 1'000'000, &error_), DTRUN_PENDING);
  EXPECT_THAT(error_.message,
              HasSubstr("allreduce #1 on 'world' (float32 x 2, sum): still running after 1ms"));
  std::int32_t done = 1;
  EXPECT_EQ(Comm().Test(*work, &done, nullptr), DTRUN_OK);
  EXPECT_EQ(done, 0);
  fake_.Complete(0);
  EXPECT_EQ(Comm().Wait(*work, 1'000'000, &error_), DTRUN_OK);
  Comm().Release(work);
  EXPECT_EQ(Run(Op(DTRUN_ALLREDUCE, 0)), DTRUN_OK);
}

TEST_F(Communicator, TellsTheOperationsOwnTimeoutFromItsWaiters) {
  fake_.complete_at_once = false;
  dtrun_work* work = Begin();
  fake_.Complete(0, DTRUN_TIMEOUT, "rank 1 did not come", 1);
  EXPECT_EQ(Comm().Wait(*work, 1'000'000, &error_), DTRUN_TIMEOUT);
  EXPECT_THAT(error_.message, HasSubstr("rank 1 did not come"));
  EXPECT_EQ(reports_.size(), 1u);
  Comm().Release(work);
}

TEST_F(Communicator, AbortsPendingAndLaterCallsFromAnyThread) {
  fake_.complete_at_once = false;
  Comm();
  auto blocked = std::async(std::launch::async, [&] {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    dtrun_op op = Op();
    const dtrun_status status = Comm().Start(op, nullptr, &error);
    EXPECT_THAT(error.message, HasSubstr("enough"));
    return status;
  });
  EXPECT_EQ(Comm().Abort("enough", nullptr), DTRUN_OK);
  EXPECT_EQ(Comm().Abort("again", nullptr), DTRUN_OK);
  EXPECT_EQ(blocked.get(), DTRUN_ABORTED);
  EXPECT_EQ(Run(Op()), DTRUN_ABORTED);
  EXPECT_THAT(error_.message, HasSubstr("'world' was aborted: enough"));
  EXPECT_EQ(abort_reasons_.front(), "enough");
  EXPECT_THAT(reports_, ElementsAre("comm.aborted of -1"));
}

TEST_F(Communicator, TellsTheReasonOfAnAbortInOneLine) {
  EXPECT_EQ(Comm().Abort("bad\x1b[2J\ndata " + std::string(1000, 'x'), nullptr), DTRUN_OK);
  ASSERT_EQ(abort_reasons_.size(), 1u);
  EXPECT_THAT(abort_reasons_.front(), StartsWith("bad\\u001b[2J\\ndata "));
  EXPECT_LT(abort_reasons_.front().size(), 400u);
}

TEST_F(Communicator, RemembersThatAnOperationSucceededBeforeTheAbort) {
  dtrun_work* work = Begin();
  EXPECT_EQ(Comm().Wait(*work, -1, nullptr), DTRUN_OK);
  EXPECT_EQ(Comm().Abort("enough", nullptr), DTRUN_OK);
  EXPECT_EQ(Comm().Wait(*work, -1, nullptr), DTRUN_OK);
  Comm().Release(work);
}

TEST_F(Communicator, SaysThatTheBackendCannotAbort) {
  fake_.caps.features = 0;
  EXPECT_EQ(Comm().Abort("enough", &(DTRUN_ERROR_INIT(error_), error_)), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("backend 'fake' cannot abort 'world'"));
  EXPECT_EQ(Run(Op()), DTRUN_OK);
}

TEST_F(Communicator, EndsWhatStillRunsBeforeTheBackendIsDestroyed) {
  fake_.complete_at_once = false;
  dtrun_work* work = Begin();
  dtrun_work* released = Begin();
  fake_.Complete(1);
  Comm().Release(released);
  const int rank = Comm().rank();
  comm_.reset();
  EXPECT_EQ(fake_.aborts, 1);
  EXPECT_EQ(fake_.abort_reason, "rank " + std::to_string(rank) + " called finalize while an operation ran");
  EXPECT_EQ(fake_.released, 2);
  EXPECT_EQ(fake_.destroyed, 1);
  EXPECT_EQ(work->comm, nullptr);
  delete work;
}

TEST_F(Communicator, DoesNotAbortWhatHasFinished) {
  dtrun_work* work = Begin();
  comm_.reset();
  EXPECT_EQ(fake_.aborts, 0);
  EXPECT_EQ(fake_.released, 1);
  delete work;
}

TEST_F(Communicator, ExplainsWhyItCouldNotBeMade) {
  fake_.create_status = DTRUN_TIMEOUT;
  fake_.text = "rank 1 did not come";
  const auto comm = dtrun_comm::Create(AMaking());
  ASSERT_FALSE(comm.ok());
  EXPECT_EQ(comm.error().code, DTRUN_TIMEOUT);
  EXPECT_THAT(comm.error().text, HasSubstr("rank 0 joining the 2 ranks of 'world' over backend 'fake'"));
  EXPECT_THAT(comm.error().text, HasSubstr("rank 1 did not come"));
  EXPECT_EQ(fake_.destroyed, 0);
}

TEST_F(Communicator, IsNotMadeOverABackendThatItWouldHaveToUnderstand) {
  fake_.caps.flags = 0x40000;
  const auto comm = dtrun_comm::Create(AMaking());
  ASSERT_FALSE(comm.ok());
  EXPECT_EQ(comm.error().code, DTRUN_UNSUPPORTED);
  EXPECT_THAT(comm.error().text, HasSubstr("backend 'fake' has the capabilities 0x40000"));
}

TEST_F(Communicator, NumbersCallsOfManyThreadsWithoutGaps) {
  Comm();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        dtrun_op op = Op();
        EXPECT_EQ(Comm().Start(op, nullptr, nullptr), DTRUN_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(fake_.ops.size(), 200u);
  for (std::size_t i = 0; i < fake_.ops.size(); ++i) EXPECT_EQ(fake_.ops[i].sequence, i + 1);
}

}  // namespace
}  // namespace dtrun::comm

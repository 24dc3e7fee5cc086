// A backend that does not end an operation in time: communicator_work.cc.
#include <chrono>
#include <future>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

// Operations end only when the test ends them, which is never.
class Deadline : public testing::CommunicatorTest {
 protected:
  Deadline() { fake_.complete_at_once = false; }
  Making AMaking() override {
    Making making = CommunicatorTest::AMaking();
    making.timeout = std::chrono::milliseconds(20);
    making.patience = std::chrono::milliseconds(10);
    making.stuck = [this] { stuck_ = true; };
    return making;
  }
  static constexpr const char* kText =
      "allreduce #1 on 'world' (float32 x 2, sum): backend 'fake' has not ended it 10ms after its timeout of "
      "20ms";
  bool stuck_ = false;
};

TEST_F(Deadline, EndsABlockingCallAndAbortsTheCommunicator) {
  EXPECT_EQ(Run(Op()), DTRUN_TIMEOUT);
  EXPECT_THAT(error_.message, AllOf(HasSubstr(kText), HasSubstr("was aborted")));
  EXPECT_EQ(fake_.aborts, 1);
  EXPECT_EQ(fake_.released, 1);
  EXPECT_THAT(reports_, ElementsAre("comm.overrun of -1"));
  EXPECT_THAT(fake_.waits, ElementsAre(30'000'000));
  EXPECT_EQ(Run(Op(DTRUN_BARRIER)), DTRUN_TIMEOUT) << "later calls return the first cause";
  EXPECT_THAT(error_.message, HasSubstr(kText));
}

TEST_F(Deadline, IsNotOverBecauseABackendReturnsEarly) {
  fake_.early_returns = 3;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Run(Op()), DTRUN_TIMEOUT);
  // The start is known to within a tick of the kernel.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(20));
  EXPECT_EQ(fake_.waits.size(), 4u);
}

TEST_F(Deadline, IsNotTheCallersBecauseABackendReturnsEarly) {
  for (const std::int64_t limit : {std::int64_t{-1}, std::int64_t{3'600'000'000'000}}) {
    dtrun_op slow = Op();
    slow.timeout_ns = -1;
    dtrun_work* work = Begin(slow);
    fake_.Complete(fake_.requests.size() - 1);
    fake_.early_returns = 3;
    EXPECT_EQ(Comm().Wait(*work, limit, &error_), DTRUN_OK);
    EXPECT_EQ(fake_.early_returns, 0);
    Comm().Release(work);
  }
}

TEST_F(Deadline, EndsAWaitAndPendingWorkOfTheSameCommunicator) {
  dtrun_work* work = Begin();
  dtrun_op slow = Op(DTRUN_BARRIER);
  slow.timeout_ns = -1;
  dtrun_work* other = Begin(slow);
  EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_TIMEOUT);
  EXPECT_THAT(error_.message, HasSubstr(kText));
  EXPECT_EQ(Comm().Wait(*other, -1, &error_), DTRUN_TIMEOUT) << "aborted for the first cause";
  EXPECT_THAT(error_.message, HasSubstr(kText));
  EXPECT_EQ(reports_.size(), 1u);
  Comm().Release(work);
  Comm().Release(other);
}

TEST_F(Deadline, EndsAProgramThatOnlyTests) {
  dtrun_work* work = Begin();
  std::int32_t done = 0;
  dtrun_status status = DTRUN_OK;
  while (done == 0) status = Comm().Test(*work, &done, &error_);
  EXPECT_EQ(status, DTRUN_TIMEOUT);
  EXPECT_THAT(error_.message, HasSubstr(kText));
  Comm().Release(work);
}

TEST_F(Deadline, CountsFromTheStartAndNotFromTheWait) {
  dtrun_work* work = Begin();
  const auto passed = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
  while (std::chrono::steady_clock::now() < passed) std::this_thread::yield();
  EXPECT_EQ(Comm().Wait(*work, 3'600'000'000'000, &error_), DTRUN_TIMEOUT);
  EXPECT_THAT(fake_.waits, ElementsAre(0));
  Comm().Release(work);
}

TEST_F(Deadline, IsTheOperationsOwnWhenItHasOne) {
  dtrun_op op = Op();
  op.timeout_ns = 70'000'000'000;
  dtrun_work* work = Begin(op);
  EXPECT_EQ(fake_.ops.back().timeout_ns, 70'000'000'000);
  fake_.Complete(0);
  EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_OK);
  EXPECT_GT(fake_.waits.front(), 1'000'000'000);
  Comm().Release(work);
}

TEST_F(Deadline, IsNoneWithoutALimit) {
  dtrun_op op = Op();
  op.timeout_ns = -7;
  dtrun_work* work = Begin(op);
  EXPECT_EQ(fake_.ops.back().timeout_ns, -1);
  EXPECT_EQ(Comm().Wait(*work, 1'000'000, &error_), DTRUN_PENDING);
  EXPECT_THAT(error_.message, HasSubstr("still running after 1ms"));
  fake_.Complete(0);
  EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_OK);
  EXPECT_THAT(fake_.waits, ElementsAre(Le(1'000'000), -1));
  Comm().Release(work);
}

TEST_F(Deadline, LeavesABackendThatCannotAbortAsItIs) {
  fake_.caps.features = 0;
  EXPECT_EQ(Run(Op()), DTRUN_TIMEOUT);
  EXPECT_THAT(error_.message, HasSubstr("it cannot abort, so end the process"));
  EXPECT_TRUE(stuck_);
  EXPECT_EQ(fake_.released, 0) << "to release it would wait for ever";
  comm_.reset();
  EXPECT_EQ(fake_.destroyed, 0);
  fake_.Complete(0);
  testing::Fake::Table().req_release(reinterpret_cast<dtrun_request*>(fake_.requests.at(0)));
}

}  // namespace
}  // namespace dtrun::comm

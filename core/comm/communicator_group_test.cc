#include <gmock/gmock.h>

#include <future>

#include "core/comm/testing/fixture.h"

namespace dtrun::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Group : public testing::CommunicatorTest {
 protected:
  Making AMaking() override {
    Making making = CommunicatorTest::AMaking();
    if (full_) making.backend = testing::Fake::FullTable();
    making.warn = [this](const std::string& text) { warned_.push_back(text); };
    return making;
  }
  dtrun_status Open() {
    DTRUN_ERROR_INIT(error_);
    return Comm().GroupBegin(&error_);
  }
  dtrun_status Close(dtrun_work** work = nullptr) {
    DTRUN_ERROR_INIT(error_);
    return Comm().GroupEnd(work, &error_);
  }
  bool full_ = true;
  std::vector<std::string> warned_;
};

TEST_F(Group, StartsItsOperationsAndEndsAsOneWork) {
  for (const bool full : {true, false}) {
    full_ = full;
    comm_.reset();
    fake_.complete_at_once = false;
    ASSERT_EQ(Open(), DTRUN_OK);
    EXPECT_EQ(Run(Op(DTRUN_RECV)), DTRUN_OK) << "it must not wait for the send";
    EXPECT_EQ(Run(Op(DTRUN_SEND)), DTRUN_OK);
    EXPECT_EQ(fake_.ops.back().flags, 0u) << "an operation of a group is not blocking";
    dtrun_work* work = nullptr;
    ASSERT_EQ(Close(&work), DTRUN_OK);
    std::int32_t done = 1;
    fake_.Complete(1);
    EXPECT_EQ(Comm().Test(*work, &done, &error_), DTRUN_OK);
    EXPECT_EQ(done, 0) << "one of two";
    EXPECT_EQ(Comm().Wait(*work, 1'000'000, &error_), DTRUN_PENDING);
    EXPECT_THAT(error_.message, HasSubstr("recv from rank 1 on 'world' (float32 x 2, tag 0): still running"));
    fake_.Complete(0);
    EXPECT_EQ(Comm().Wait(*work, -1, &error_), DTRUN_OK);
    EXPECT_EQ(Comm().Test(*work, &done, &error_), DTRUN_OK);
    EXPECT_EQ(done, 1);
    Comm().Release(work);
    EXPECT_THAT(fake_.requests, IsEmpty());
  }
  EXPECT_EQ(fake_.group_begins, 1);
  EXPECT_EQ(fake_.group_ends, 1);
}

TEST_F(Group, BlocksAtItsEndWithoutAWork) {
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(Run(Op(DTRUN_ALLREDUCE, 0)), DTRUN_OK);
  EXPECT_EQ(Run(Op(DTRUN_BARRIER)), DTRUN_OK);
  EXPECT_THAT(fake_.waits, IsEmpty());
  EXPECT_EQ(Close(), DTRUN_OK);
  EXPECT_EQ(fake_.waits.size(), 2u);
  EXPECT_EQ(fake_.released, 2);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(fake_.ops.back().sequence, 4u);
  EXPECT_EQ(fake_.ops.back().flags, std::uint32_t{DTRUN_OP_BLOCKING});
}

TEST_F(Group, MayBeEmpty) {
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Close(), DTRUN_OK);
  ASSERT_EQ(Open(), DTRUN_OK);
  dtrun_work* work = nullptr;
  ASSERT_EQ(Close(&work), DTRUN_OK);
  std::int32_t done = 0;
  EXPECT_EQ(Comm().Test(*work, &done, nullptr), DTRUN_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(Comm().Wait(*work, -1, nullptr), DTRUN_OK);
  Comm().Release(work);
}

TEST_F(Group, LeavesOutWhatIsRefused) {
  ASSERT_EQ(Open(), DTRUN_OK);
  dtrun_op bad = Op();
  bad.send = nullptr;
  EXPECT_EQ(Run(bad), DTRUN_INVALID_ARGUMENT);
  dtrun_op op = Op();
  dtrun_work* work = nullptr;
  EXPECT_EQ(Comm().Start(op, &work, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("inside a group work is NULL"));
  EXPECT_EQ(work, nullptr);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(Close(), DTRUN_OK);
  EXPECT_EQ(fake_.ops.size(), 1u);
}

TEST_F(Group, BelongsToTheThreadThatOpenedIt) {
  ASSERT_EQ(Open(), DTRUN_OK);
  const auto elsewhere = [&](auto call) { return std::async(std::launch::async, call).get(); };
  EXPECT_EQ(elsewhere([&] { return Run(Op()); }), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("another thread has a group open on 'world'"));
  EXPECT_EQ(elsewhere([&] { return Close(); }), DTRUN_FAILED_PRECONDITION);
  EXPECT_EQ(Open(), DTRUN_FAILED_PRECONDITION) << "groups do not nest";
  EXPECT_THAT(error_.message, HasSubstr("has a group open already"));
  EXPECT_EQ(Close(), DTRUN_OK);
  EXPECT_EQ(Close(), DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("group_begin opens one"));
  EXPECT_EQ(elsewhere([&] { return Run(Op()); }), DTRUN_OK);
}

TEST_F(Group, FailsAsAWholeAndLeavesNothingRunning) {
  fake_.complete_at_once = false;
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(Run(Op(DTRUN_BARRIER)), DTRUN_OK);
  fake_.Complete(0, DTRUN_REMOTE_FAILURE, "rank 1 is gone", 1);
  EXPECT_EQ(Close(), DTRUN_REMOTE_FAILURE);
  EXPECT_THAT(error_.message, HasSubstr("allreduce #1 on 'world' (float32 x 2, sum): rank 1 is gone"));
  EXPECT_THAT(fake_.requests, IsEmpty());
  EXPECT_EQ(fake_.aborts, 1);
  EXPECT_EQ(Open(), DTRUN_REMOTE_FAILURE);
}

TEST_F(Group, FailsWhenTheBackendCannotStartIt) {
  fake_.complete_at_once = false;
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  fake_.group_status = DTRUN_UNSUPPORTED;
  EXPECT_EQ(Close(), DTRUN_UNSUPPORTED);
  EXPECT_THAT(error_.message, HasSubstr("group on 'world': the fake says no"));
  EXPECT_THAT(fake_.requests, IsEmpty());
  EXPECT_EQ(Run(Op()), DTRUN_UNSUPPORTED) << "what had started cannot be taken back";
}

TEST_F(Group, IsNotOpenWhenTheBackendRefusesIt) {
  fake_.group_status = DTRUN_BUSY;
  EXPECT_EQ(Open(), DTRUN_BUSY);
  fake_.group_status = DTRUN_OK;
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(Close(), DTRUN_FAILED_PRECONDITION);
}

TEST_F(Group, EndsWithItsCommunicator) {
  fake_.complete_at_once = false;
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  comm_.reset();
  EXPECT_THAT(warned_, ElementsAre("rank 0 called finalize inside a group on 'world'; call group_end first"));
  EXPECT_EQ(fake_.aborts, 1);
  EXPECT_EQ(fake_.destroyed, 1);
  EXPECT_THAT(fake_.requests, IsEmpty());
}

TEST_F(Group, OutlivesItsCommunicatorAsAHandle) {
  ASSERT_EQ(Open(), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  EXPECT_EQ(Run(Op()), DTRUN_OK);
  dtrun_work* work = nullptr;
  ASSERT_EQ(Close(&work), DTRUN_OK);
  comm_.reset();
  EXPECT_EQ(work->comm, nullptr);
  dtrun_comm::Delete(work);
}

}  // namespace
}  // namespace dtrun::comm

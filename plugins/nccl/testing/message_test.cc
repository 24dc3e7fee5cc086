// Messages over nccl: order instead of tags, groups instead of free crossing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "fake.h"

namespace dtrun::nccl_test {
namespace {

using conformance::MakeOp;
using conformance::Outcome;
using conformance::Pending;
using conformance::Rank;
using conformance::RecvOp;
using conformance::SendOp;
using conformance::Subject;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NcclMessages, KeepTheirOrder) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [](Rank& rank) {
    std::vector<std::int32_t> data(200, -1);
    if (rank.rank() == 0) std::iota(data.begin(), data.end(), 0);
    std::vector<std::unique_ptr<Pending>> pending;
    for (auto& value : data) {
      pending.push_back(rank.Start(rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 0)
                                                    : RecvOp(&value, 1, DTRUN_INT32, 0, 0)));
    }
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    std::vector<std::int32_t> expected(200);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(data, expected);
  });
}

TEST(NcclMessages, OfNoElementsStillArrive) {
  const Fake fake;
  const Subject subject(fake.Backend());
  std::atomic<bool> sent{false};
  subject.Play(2, [&](Rank& rank) {
    if (rank.rank() == 0) {
      sent = true;
      EXPECT_TRUE(rank.Do(SendOp(nullptr, 0, DTRUN_FLOAT32, 1, 0)).ok());
    } else {
      EXPECT_TRUE(rank.Do(RecvOp(nullptr, 0, DTRUN_FLOAT32, 0, 0)).ok());
      EXPECT_TRUE(sent);
    }
  });
}

TEST(NcclMessages, RefuseATag) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [](Rank& rank) {
    float value = 0;
    Outcome refusal;
    EXPECT_EQ(rank.Start(SendOp(&value, 1, DTRUN_FLOAT32, 1 - rank.rank(), 7), &refusal), nullptr);
    EXPECT_EQ(refusal.code, DTRUN_UNSUPPORTED);
    EXPECT_THAT(refusal.text, AllOf(HasSubstr("tag 7"), HasSubstr("in the order of the sends")));
    EXPECT_TRUE(rank.Barrier().ok());
  });
}

TEST(NcclMessages, ThatNobodyAnswersTimeOutAndNameThePeer) {
  const Fake fake;
  const Subject subject(fake.Backend());
  std::atomic<bool> timed_out{false};
  subject.Play(2, [&](Rank& rank) {
    if (rank.rank() == 1) {
      while (!timed_out) std::this_thread::yield();
      return;
    }
    float value = 1;
    dtrun_op op = RecvOp(&value, 1, DTRUN_FLOAT32, 1, 0);
    op.timeout_ns = 300'000'000;
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_TIMEOUT) << outcome;
    EXPECT_EQ(outcome.peer, 1);
    EXPECT_THAT(outcome.text, HasSubstr("recv from rank 1"));
    timed_out = true;
  });
}

TEST(NcclMessages, BetweenOthersOutliveARankThatIsDone) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(3, [](Rank& rank) {
    std::vector<std::int32_t> data(100'000, rank.rank() == 0 ? 4 : 0);
    dtrun_op op = conformance::AllreduceOp(nullptr, data.data(), data.size(), DTRUN_INT32, 0);
    op.kind = DTRUN_BROADCAST;
    op.root = 0;
    EXPECT_TRUE(rank.Do(op).ok());
    if (rank.rank() == 0) return;
    for (int i = 0; i < 50; ++i) {
      // Long enough for the waiting rank to see who has left.
      if (rank.rank() == 1 && i == 10) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const Outcome outcome = rank.rank() == 1 ? rank.Do(SendOp(data.data(), data.size(), DTRUN_INT32, 2, 0))
                                               : rank.Do(RecvOp(data.data(), data.size(), DTRUN_INT32, 1, 0));
      EXPECT_TRUE(outcome.ok()) << outcome;
    }
    EXPECT_EQ(data, std::vector<std::int32_t>(100'000, 4));
  });
}

TEST(NcclMessages, ToARankThatLeftFail) {
  const Fake fake;
  const Subject subject(fake.Backend());
  subject.Play(2, [](Rank& rank) {
    float value = 1;
    EXPECT_TRUE((rank.rank() == 0 ? rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))
                                  : rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0)))
                    .ok());
    if (rank.rank() == 1) return;
    const Outcome outcome = rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0));
    EXPECT_EQ(outcome.code, DTRUN_REMOTE_FAILURE) << outcome;
    EXPECT_EQ(outcome.peer, 1);
  });
}

}  // namespace
}  // namespace dtrun::nccl_test

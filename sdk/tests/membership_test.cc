#include "dtrun/plugin/membership.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "sdk/conformance/host.h"
#include "sdk/conformance/kv.h"

namespace dtrun::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MembershipTest : public testing::Test {
 protected:
  Membership Of(int rank, int size) {
    return Membership(CommParams{rank, size, 1, 0, "world", Kv(Host(conformance::Host()), &space_),
                                 std::chrono::milliseconds(50)});
  }

  conformance::ThreadKv space_;
};

TEST_F(MembershipTest, TellsEachRankWhatAllSaid) {
  std::vector<std::string> seen[3];
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      seen[rank] = Of(rank, 3).Exchange("place", "I am " + std::to_string(rank), Deadline());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& one : seen) EXPECT_THAT(one, ElementsAre("I am 0", "I am 1", "I am 2"));
}

TEST_F(MembershipTest, NamesTheRanksThatDoNotCome) {
  try {
    Of(1, 4).Join("place", "", Deadline(std::chrono::milliseconds(10)));
    FAIL() << "it did not wait";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_TIMEOUT);
    EXPECT_EQ(failure.peer(), 0);
    EXPECT_THAT(failure.what(), HasSubstr("ranks 0, 2 and 3 of 4 did not join 'world' within 10 ms;"));
  }
}

TEST_F(MembershipTest, NamesAnotherRanksFailureRatherThanTheRankThatThereforeDidNotCome) {
  Of(0, 2).PublishFailure(Failure(DTRUN_FAILED_PRECONDITION, "no device"));
  try {
    Of(1, 2).Join("place", "", Deadline(std::chrono::milliseconds(10)));
    FAIL() << "it did not wait";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_REMOTE_FAILURE);
    EXPECT_EQ(failure.peer(), 0);
    EXPECT_STREQ(failure.what(), "rank 0 gave up: no device");
  }
}

TEST_F(MembershipTest, KeepsTheFirstFailure) {
  Of(1, 3).PublishFailure(Failure(DTRUN_TIMEOUT, "rank 0 is late", 0));
  Of(2, 3).PublishFailure(Failure(DTRUN_SYSTEM, "later"));
  EXPECT_FALSE(Of(1, 3).FailureOfAnother());
  EXPECT_EQ(Of(2, 3).FailureOfAnother()->peer(), 1);
  EXPECT_STREQ(Of(2, 3).FailureOfAnother()->what(), "rank 1 gave up: rank 0 is late");
}

TEST_F(MembershipTest, BlamesTheLostRankAndNotTheOneThatNoticed) {
  Of(1, 3).PublishFailure(Failure(DTRUN_REMOTE_FAILURE, "lost rank 2", 2));
  EXPECT_EQ(Of(0, 3).FailureOfAnother()->peer(), 2);
  EXPECT_EQ(Of(2, 3).FailureOfAnother()->peer(), 1);  // no rank blames itself
}

TEST_F(MembershipTest, PassesAnAbortOn) {
  Of(0, 2).PublishFailure(Failure(DTRUN_ABORTED, "'world' was aborted: enough"));
  EXPECT_EQ(Of(1, 2).FailureOfAnother()->code(), DTRUN_ABORTED);
}

TEST_F(MembershipTest, KnowsWhoHasLeft) {
  EXPECT_FALSE(Of(0, 2).AnyLeft());
  EXPECT_EQ(Of(0, 2).Left(1), std::nullopt);
  Of(1, 2).Leave("after call 7");
  EXPECT_TRUE(Of(0, 2).AnyLeft());
  EXPECT_EQ(Of(0, 2).Left(1), "after call 7");
  EXPECT_EQ(Of(0, 2).Left(0), std::nullopt);
}

TEST(RanksText, ListsAFewAndCountsTheRest) {
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(RanksText({1, 2, 3, 4, 5}), "ranks 1, 2, 3, 4 and 5");
  EXPECT_EQ(RanksText({1, 2, 3, 4, 5, 6}), "ranks 1, 2, 3, 4 and 2 more");
}

}  // namespace
}  // namespace dtrun::sdk

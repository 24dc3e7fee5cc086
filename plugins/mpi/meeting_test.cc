#include "meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

namespace dtrun::mpi_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kLong = std::chrono::seconds(60);

// The ranks of one page, each with a mapping of its own, as in processes.
class MeetingOf : public ::testing::Test {
 protected:
  void Start(int size) {
    Page first = Page::Make(size);
    const std::string address = first.Address();
    ranks_.emplace_back(std::move(first), 0, size);
    for (int rank = 1; rank < size; ++rank) ranks_.emplace_back(Page::Open(address, size), rank, size);
  }
  static Agenda Call(std::uint64_t number, std::int32_t kind = DTRUN_BARRIER) {
    return {number, static_cast<std::uint32_t>(kind), kind, 0, 0, -1, 0};
  }
  std::deque<Meeting> ranks_;
};

TEST_F(MeetingOf, IsReadyWhenTheLastRankHasCome) {
  Start(3);
  EXPECT_FALSE(ranks_[0].Come(Call(1)));
  EXPECT_FALSE(ranks_[2].Come(Call(1)));
  EXPECT_FALSE(ranks_[0].Ready(1));
  EXPECT_TRUE(ranks_[1].Come(Call(1)));
  EXPECT_TRUE(ranks_[0].Ready(1));
}

TEST_F(MeetingOf, StaysReadyWhenOthersHaveGoneOn) {
  Start(2);
  ranks_[0].Come(Call(1));
  ranks_[1].Come(Call(1));
  ranks_[1].Come(Call(2));
  EXPECT_TRUE(ranks_[0].Ready(1));
  EXPECT_FALSE(ranks_[1].Ready(2));
}

TEST_F(MeetingOf, LetsARankGoBackUntilAllHaveCome) {
  Start(2);
  ranks_[0].Come(Call(1));
  EXPECT_TRUE(ranks_[0].GoBack(1));
  EXPECT_FALSE(ranks_[1].Come(Call(1)));
  EXPECT_TRUE(ranks_[0].Come(Call(1)));
  EXPECT_FALSE(ranks_[1].GoBack(1));
}

TEST_F(MeetingOf, GoesOnBeyondTheNumbersThatFitItsWord) {
  Start(2);
  for (std::uint64_t call = 1; call < 200'000; ++call) {
    const auto first = static_cast<std::size_t>(call % 2);
    ASSERT_FALSE(ranks_[first].Come(Call(call)));
    ASSERT_TRUE(ranks_[1 - first].Come(Call(call)));
    ASSERT_TRUE(ranks_[first].Ready(call));
  }
}

TEST_F(MeetingOf, NamesBothRanksAndCallsOfADisagreement) {
  Start(3);
  ranks_[0].Come(Call(1, DTRUN_BARRIER));
  try {
    ranks_[2].Come(Call(1, DTRUN_ALLREDUCE));
    FAIL() << "they agreed";
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(failure.peer(), 0);
    EXPECT_THAT(failure.what(),
                AllOf(HasSubstr("collective 1"), HasSubstr("allreduce of 0 unknown type on rank 2"),
                      HasSubstr("barrier on rank 0")));
  }
  EXPECT_TRUE(ranks_[0].GoBack(1));
}

TEST_F(MeetingOf, WakesWhoSleeps) {
  Start(2);
  ranks_[0].Come(Call(1));
  std::thread sleeper([&] {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!ranks_[0].Ready(1)) ranks_[0].Sleep(1, end);
    EXPECT_LT(std::chrono::steady_clock::now(), end);
  });
  ranks_[1].Come(Call(1));
  sleeper.join();
}

TEST_F(MeetingOf, TellsOfDeparturesAndPutsFailuresFirst) {
  Start(3);
  EXPECT_FALSE(ranks_[0].FindDeparture());
  ranks_[1].Depart(Fate::kLeft, "");
  EXPECT_EQ(ranks_[0].FindDeparture()->fate, Fate::kLeft);
  ranks_[2].Depart(Fate::kFailed, std::string(1000, 'x'), 1);
  ranks_[2].Depart(Fate::kLeft, "");
  const auto found = ranks_[0].FindDeparture();
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->fate, Fate::kFailed);
  EXPECT_EQ(found->culprit, 1);
  EXPECT_EQ(found->reason.substr(0, 3), "xxx");
}

TEST(PageOf, AnotherProcessIsNotTakenForOurs) {
  const Page page = Page::Make(2);
  EXPECT_THROW(Page::Open(page.Address() + "0", 2), sdk::Failure);
  EXPECT_THROW(Page::Open(page.Address(), 3), sdk::Failure);
  EXPECT_THROW(Page::Open("/proc/self/fd/999999 1", 2), sdk::Failure);
}

}  // namespace
}  // namespace dtrun::mpi_plugin

#include "entry_barrier.h"

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
class EntryBarrierTest : public ::testing::Test {
 protected:
  void Start(int size) {
    Page first = Page::Make(size);
    const std::string address = first.Address();
    ranks_.emplace_back(std::move(first), 0, size);
    for (int rank = 1; rank < size; ++rank) ranks_.emplace_back(Page::Open(address, size), rank, size);
  }
  bool Enter(std::size_t rank, std::uint64_t call, std::uint8_t kind = DTRUN_BARRIER) {
    sdk::Signature signature;
    signature.kind = kind;
    return ranks_[rank].Enter(call, signature);
  }
  std::deque<EntryBarrier> ranks_;
};

TEST_F(EntryBarrierTest, IsReadyWhenTheLastRankHasCome) {
  Start(3);
  EXPECT_FALSE(Enter(0, 1));
  EXPECT_FALSE(Enter(2, 1));
  EXPECT_FALSE(ranks_[0].Ready(1));
  EXPECT_TRUE(Enter(1, 1));
  EXPECT_TRUE(ranks_[0].Ready(1));
}

TEST_F(EntryBarrierTest, StaysReadyWhenOthersHaveGoneOn) {
  Start(2);
  Enter(0, 1);
  Enter(1, 1);
  Enter(1, 2);
  EXPECT_TRUE(ranks_[0].Ready(1));
  EXPECT_FALSE(ranks_[1].Ready(2));
}

TEST_F(EntryBarrierTest, LetsARankGoBackUntilAllHaveCome) {
  Start(2);
  Enter(0, 1);
  EXPECT_TRUE(ranks_[0].GoBack(1));
  EXPECT_FALSE(Enter(1, 1));
  EXPECT_TRUE(Enter(0, 1));
  EXPECT_FALSE(ranks_[1].GoBack(1));
}

TEST_F(EntryBarrierTest, GoesOnBeyondTheNumbersThatFitItsWord) {
  Start(2);
  for (std::uint64_t call = 1; call < 200'000; ++call) {
    const auto first = static_cast<std::size_t>(call % 2);
    ASSERT_FALSE(Enter(first, call));
    ASSERT_TRUE(Enter(1 - first, call));
    ASSERT_TRUE(ranks_[first].Ready(call));
  }
}

TEST_F(EntryBarrierTest, NamesBothRanksAndCallsOfADisagreement) {
  Start(3);
  Enter(0, 1, DTRUN_BARRIER);
  try {
    Enter(2, 1, DTRUN_ALLREDUCE);
    FAIL() << "they agreed";
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code(), DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(failure.peer(), 0);
    EXPECT_THAT(failure.what(),
                AllOf(HasSubstr("collective 1"), HasSubstr("allreduce (unknown type x 0) on rank 2"),
                      HasSubstr("barrier on rank 0")));
  }
  EXPECT_TRUE(ranks_[0].GoBack(1));
}

TEST_F(EntryBarrierTest, WakesWhoSleeps) {
  Start(2);
  Enter(0, 1);
  std::thread sleeper([&] {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!ranks_[0].Ready(1)) ranks_[0].Sleep(1, end);
    EXPECT_LT(std::chrono::steady_clock::now(), end);
  });
  Enter(1, 1);
  sleeper.join();
}

TEST_F(EntryBarrierTest, TellsOfDeparturesAndPutsFailuresFirst) {
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

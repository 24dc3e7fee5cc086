#include <gtest/gtest.h>

#include "core/observe/stall_watch.h"

namespace dtrun::observe {
namespace {

using std::chrono::seconds;

class StandstillTest : public ::testing::Test {
 protected:
  // Adds a look one second later.
  void Look(std::int64_t used_ms, std::int64_t bytes, const std::string& phrase, std::uint64_t calls = 0) {
    verdict::RankDoing waits, other;
    waits.rank = 0;
    waits.phrase = "in all_reduce at t.py:3";
    other.rank = 1;
    other.processor_ms = used_ms;
    other.bytes = bytes;
    other.phrase = phrase;
    at_ += seconds(1);
    still_.Add(protocol::Inspected{0, {waits, other}, calls}, at_);
  }

  Standstill still_;
  Standstill::Clock::time_point at_{};
};

TEST_F(StandstillTest, LastsSinceTheFirstLookThatWasLikeAllAfterIt) {
  for (int i = 0; i < 5; ++i) Look(100, 7, "in time.sleep at t.py:5");
  EXPECT_EQ(still_.Lasts(), seconds(4));
  EXPECT_EQ(still_.Lasts(1), seconds(4));
  EXPECT_FALSE(still_.Works(1));
}

TEST_F(StandstillTest, IsNotEndedByAHeartbeat) {
  for (int i = 0; i < 50; ++i) Look(100 + 10L * i, 7, "in time.sleep at t.py:5");
  EXPECT_EQ(still_.Lasts(1), seconds(49));
}

TEST_F(StandstillTest, IsNotEndedByALookBetweenTwoShortSleeps) {
  for (int i = 0; i < 20; ++i) Look(100 + i, 7, i % 3 == 1 ? "running" : "in clock_nanosleep");
  EXPECT_EQ(still_.Lasts(1), seconds(19));
  Look(120, 7, "in poll");
  EXPECT_EQ(still_.Lasts(1), seconds(0));
}

TEST_F(StandstillTest, EndsWithAByteAPlaceOrACall) {
  Look(100, 7, "in time.sleep at t.py:5");
  Look(100, 8, "in time.sleep at t.py:5");
  EXPECT_EQ(still_.Lasts(), seconds(0));
  Look(100, 8, "in time.sleep at t.py:6");
  EXPECT_EQ(still_.Lasts(), seconds(0));
  EXPECT_EQ(still_.Lasts(0), seconds(2));
  Look(100, 8, "in time.sleep at t.py:6", 1);
  EXPECT_EQ(still_.Lasts(), seconds(0));
  Look(100, 8, "in time.sleep at t.py:6", 1);
  EXPECT_EQ(still_.Lasts(), seconds(1));
}

TEST_F(StandstillTest, TellsARankThatWorksFromOneThatMoves) {
  for (int i = 0; i < 4; ++i) Look(100 + 1000L * i, 7, "at t.py:" + std::to_string(i));
  EXPECT_EQ(still_.Lasts(), seconds(3));  // it may be an endless loop
  EXPECT_TRUE(still_.Works(1));
  EXPECT_EQ(still_.Lasts(1), seconds(0));
  Look(3100, 7, "at t.py:3");
  EXPECT_FALSE(still_.Works(1));
  EXPECT_EQ(still_.Lasts(1), seconds(1));
  EXPECT_EQ(still_.Lasts(), seconds(4));
}

TEST_F(StandstillTest, APollOfALibraryIsNoWork) {
  verdict::RankDoing rank;
  rank.phrase = "in time.sleep at t.py:4";
  rank.in_source = true;
  const auto look = [&](std::int64_t used_ms, std::int64_t kernel_ms) {
    rank.processor_ms += used_ms;
    rank.kernel_ms += kernel_ms;
    still_.Add(protocol::Inspected{0, {rank}, 0}, at_ += seconds(1));
    return still_.Works(0);
  };
  EXPECT_FALSE(look(100, 0));
  EXPECT_FALSE(look(1000, 700));
  EXPECT_EQ(still_.Lasts(0), seconds(1));
  rank.runs = true;
  EXPECT_TRUE(look(1000, 700));
  rank.runs = false;
  EXPECT_TRUE(look(1000, 100));
}

TEST_F(StandstillTest, KnowsThatARankHasWaitedUntilItMoves) {
  verdict::RankDoing rank;
  const auto waited = [&](stacks::Stand stand, const char* phrase) {
    rank.stand = stand;
    rank.phrase = phrase;
    still_.Add(protocol::Inspected{0, {rank}, 0}, at_ += seconds(1));
    return still_.Waited(0);
  };
  EXPECT_FALSE(waited(stacks::Stand::kMayWait, "in backward at t.py:4"));
  EXPECT_TRUE(waited(stacks::Stand::kWaits, "in backward at t.py:4"));
  EXPECT_TRUE(waited(stacks::Stand::kMayWait, "in backward at t.py:4"));
  EXPECT_FALSE(waited(stacks::Stand::kMayWait, "in backward at t.py:5"));
}

TEST_F(StandstillTest, DoesNotCountTheTimeInWhichAToolHasStoppedARank) {
  for (int i = 0; i < 3; ++i) Look(1000L * i, 7, "at t.py:5");
  verdict::RankDoing stopped;
  stopped.rank = 1;
  stopped.processor_ms = 2010;
  at_ += seconds(5);
  still_.Resume({1}, protocol::Inspected{0, {stopped}, 0}, at_);
  Look(2020, 7, "at t.py:5");
  EXPECT_EQ(still_.Lasts(1), seconds(1));
  for (int i = 0; i < 3; ++i) Look(2020, 7, "at t.py:5");
  still_.Resume({1}, protocol::Inspected{0, {stopped}, 0}, at_);  // it did not work before
  EXPECT_EQ(still_.Lasts(1), seconds(4));
}

TEST_F(StandstillTest, GoesOnWhenHelpersTakeTheirTimesAway) {
  Look(5000, 7, "in wait at t.py:5");
  Look(100, 7, "in wait at t.py:5");
  Look(100, 7, "in wait at t.py:5");
  EXPECT_FALSE(still_.Works(1));
  EXPECT_EQ(still_.Lasts(1), seconds(1));
}

// Of a program that is not Python, which waits for messages between short sleeps.
TEST_F(StandstillTest, EndsWhenARankSleepsAtAnotherPlace) {
  const auto look = [this](std::uint64_t spot) {
    protocol::Inspected seen;
    seen.ranks.emplace_back().phrase = "in clock_nanosleep";
    seen.ranks.back().spot = spot;
    at_ += seconds(1);
    still_.Add(seen, at_);
    return still_.Lasts();
  };
  look(7);
  EXPECT_EQ(look(7), seconds(1));
  EXPECT_EQ(look(0), seconds(2));  // between two sleeps
  EXPECT_EQ(look(7), seconds(3));
  EXPECT_EQ(look(8), seconds(0));
}

TEST_F(StandstillTest, KnowsHowLongARankHasBeenAwake) {
  const auto look = [this](std::int64_t sleeps) {
    protocol::Inspected seen;
    seen.ranks.emplace_back().scheduled.sleeps = sleeps;
    at_ += seconds(1);
    still_.Add(seen, at_);
    return still_.Awake(0);
  };
  look(5);
  EXPECT_EQ(look(5), seconds(1));
  EXPECT_EQ(look(6), seconds(0));
  protocol::Inspected stopped;
  stopped.ranks.emplace_back().scheduled.sleeps = 9;
  still_.Resume({0}, stopped, at_);
  EXPECT_EQ(look(9), seconds(1));
}

}  // namespace
}  // namespace dtrun::observe

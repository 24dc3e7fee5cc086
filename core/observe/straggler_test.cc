#include "core/observe/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace dtrun::observe {
namespace {

using protocol::RankLooks;

RankLooks Looks(int rank, std::string letters, int active_percent = 50, std::uint32_t every = 1) {
  return {rank, every, std::move(letters), active_percent, "in load at t.py:6"};
}

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Straggler, IsTheRankThatSleepsWhileTheOthersWait) {
  const auto found =
      StragglerOf({Looks(0, Repeat("w", 20)), Looks(1, Repeat("eeeew", 4)), Looks(2, Repeat("w", 20))});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->percent, 80);
  EXPECT_EQ(found->looks, 20);
  EXPECT_EQ(found->place, "in load at t.py:6");
  EXPECT_EQ(found->rival, 0);
}

// Its time on a processor shows whether it was at work, or only delayed by the look.
TEST(Straggler, ThatComputesIsBusierThanTheOthers) {
  const auto at_work = [](int percent) {
    return StragglerOf(
        {Looks(0, Repeat("w", 20), 20), Looks(1, Repeat("c", 20), percent), Looks(2, Repeat("w", 20), 20)});
  };
  EXPECT_TRUE(at_work(95).has_value());
  EXPECT_FALSE(at_work(30).has_value());
  EXPECT_TRUE(at_work(-1).has_value());  // the kernel does not tell
}

TEST(Straggler, IsJudgedFromTheFirstWaitOn) {
  const auto found =
      StragglerOf({Looks(0, Repeat("c", 40) + Repeat("w", 20)), Looks(1, Repeat("c", 40) + Repeat("e", 20))});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->looks, 20);
}

TEST(Straggler, IsNotARankOnWhichTheOthersWaitOnlyOnce) {
  EXPECT_FALSE(StragglerOf({Looks(0, "w" + Repeat("v", 200)), Looks(1, Repeat("e", 201))}).has_value());
  EXPECT_FALSE(StragglerOf({Looks(0, Repeat("wvvvvvvvvv", 8)), Looks(1, Repeat("e", 80))}).has_value());
  EXPECT_TRUE(StragglerOf({Looks(0, Repeat("wvvv", 20)), Looks(1, Repeat("e", 80))}).has_value());
}

TEST(Straggler, HasARivalThatExplainsASmallerShare) {
  std::vector<RankLooks> looks = {Looks(0, Repeat("wwcc", 15), 50), Looks(1, Repeat("cccc", 15), 98)};
  EXPECT_FALSE(StragglerOf(looks).has_value());
  looks[1].rival = 4711;
  looks[1].rival_command = "yes";
  looks[1].rival_looks = 4;
  EXPECT_FALSE(StragglerOf(looks).has_value());
  looks[1].rival_looks = 40;
  const auto found = StragglerOf(looks);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->percent, 50);
  EXPECT_EQ(found->rival, 4711);
  EXPECT_EQ(found->rival_command, "yes");
}

TEST(Straggler, ThatSleepsIsNotHeldUpByAnotherProgram) {
  std::vector<RankLooks> looks = {Looks(0, Repeat("w", 60)), Looks(1, Repeat("e", 60))};
  looks[1].rival = 4711;
  looks[1].rival_command = "yes";
  looks[1].rival_looks = 60;
  const auto found = StragglerOf(looks);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->rival, 0);
}

// The host of rank 1 looked at every fourth moment only.
TEST(Straggler, IsFoundAmongHostsThatLookedAtDifferentIntervals) {
  const auto found = StragglerOf({Looks(0, Repeat("vvvw", 20)), Looks(1, Repeat("e", 20), 50, 4)});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->looks, 20);
  EXPECT_FALSE(StragglerOf({Looks(0, Repeat("v", 80)), Looks(1, Repeat("e", 20), 50, 4)}).has_value());
  EXPECT_FALSE(StragglerOf({Looks(0, Repeat("w", 80), 50, 3), Looks(1, Repeat("e", 80), 50, 4)}).has_value());
  EXPECT_FALSE(StragglerOf({}).has_value());
}

// Healthy jobs, with steps of one look and of many: a rank of each step is late, at random.
TEST(Straggler, IsNoRankOfHealthyJobs) {
  std::mt19937 random(5);
  int accused = 0;
  for (int job = 0; job < 2'000; ++job) {
    const int ranks = 2 + job % 7, looks_of_step = 1 + job % 9, steps = 1 + static_cast<int>(random() % 40);
    std::vector<RankLooks> looks;
    for (int rank = 0; rank < ranks; ++rank) looks.push_back(Looks(rank, ""));
    for (int step = 0; step < steps; ++step) {
      const int late = static_cast<int>(random() % static_cast<unsigned>(ranks));
      for (int look = 0; look < looks_of_step; ++look) {
        for (RankLooks& one : looks) one.letters += one.rank == late ? 'e' : look == 0 ? 'w' : 'v';
      }
    }
    accused += StragglerOf(std::move(looks)) ? 1 : 0;
  }
  EXPECT_LE(accused, 4);  // 0.2 %
}

}  // namespace
}  // namespace dtrun::observe

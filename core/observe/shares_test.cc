#include "core/observe/shares.h"

#include <gtest/gtest.h>

#include <random>

namespace dtrun::observe {
namespace {

using stacks::Stand;
using Clock = Shares::Clock;

verdict::RankDoing At(int rank, Stand stand, const std::string& phrase, std::int64_t processor_ms = 0) {
  verdict::RankDoing doing;
  doing.rank = rank;
  doing.stand = stand;
  doing.phrase = phrase;
  doing.processor_ms = processor_ms;
  return doing;
}

// Ranks 0 and 2 wait again at each look, for rank 1 but for every fifth.
TEST(Shares, NamesTheRankThatTheOthersWaitFor) {
  Shares shares;
  Clock::time_point at{};
  for (int look = 0; look < 15; ++look, at += std::chrono::milliseconds(250)) {
    const bool meets = look % 5 == 4;
    std::vector<verdict::RankDoing> looked = {
        At(0, Stand::kWaits, "in all_reduce at t.py:8"),
        meets ? At(1, Stand::kWaits, "in all_reduce at t.py:8")
              : At(1, Stand::kElsewhere, "in time.sleep at t.py:6", 100 * look),
        At(2, Stand::kWaits, "in all_reduce at t.py:8")};
    for (verdict::RankDoing& doing : looked) doing.scheduled.sleeps = look;
    shares.Add(looked, at);
  }
  const auto straggler = shares.Straggler();
  ASSERT_TRUE(straggler.has_value());
  EXPECT_EQ(straggler->rank, 1);
  EXPECT_EQ(
      StragglerText(*straggler),
      "rank 1 makes the others wait: in 80 % of 15 looks it was elsewhere, mostly in time.sleep at t.py:6, "
      "while they waited");
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].waits, 1);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].delays, 0);
}

TEST(Shares, NamesNoRankOfFewLooksOrOfARankAlone) {
  Shares few, alone;
  for (int look = 0; look < 9; ++look) {
    few.Add({At(0, Stand::kWaits, "w"), At(1, Stand::kElsewhere, "e")},
            Clock::time_point() + std::chrono::seconds(look));
  }
  for (int look = 0; look < 50; ++look)
    alone.Add({At(0, Stand::kElsewhere, "e")}, Clock::time_point() + std::chrono::seconds(look));
  EXPECT_FALSE(few.Straggler().has_value());
  EXPECT_FALSE(alone.Straggler().has_value());
}

// Healthy jobs: each rank is as often late as the others, at random.
TEST(Shares, AccusesNoRankOfHealthyJobs) {
  std::mt19937 random(7);
  int accused = 0;
  for (int job = 0; job < 10'000; ++job) {
    Shares shares;
    const int ranks = 2 + job % 7;
    for (int look = 0; look < 12; ++look) {
      std::vector<verdict::RankDoing> looked;
      const int late = static_cast<int>(random() % static_cast<unsigned>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        const bool elsewhere = rank == late || random() % 4 == 0;
        looked.push_back(At(rank, elsewhere ? Stand::kElsewhere : Stand::kWaits, "p"));
        looked.back().scheduled.sleeps = look;
      }
      shares.Add(looked, Clock::time_point() + std::chrono::seconds(look));
    }
    accused += shares.Straggler() ? 1 : 0;
  }
  EXPECT_LE(accused, 20);  // 0.2 %
}

TEST(Shares, NamesNoRankForOneLongWaitAndWhomItDelays) {
  Shares shares;
  for (int look = 0; look < 50; ++look) {
    std::vector<verdict::RankDoing> looked = {At(0, Stand::kWaits, "w"), At(1, Stand::kElsewhere, "e"),
                                              At(2, Stand::kElsewhere, "e")};
    looked[0].awaited = contract::Awaited{.ranks = {1}};
    if (look >= 20) looked[0].scheduled.sleeps = look;
    shares.Add(looked, Clock::time_point() + std::chrono::seconds(look));
    if (look == 20) {
      EXPECT_FALSE(shares.Straggler().has_value());
    }
  }
  ASSERT_TRUE(shares.Straggler().has_value());
  EXPECT_EQ(shares.Straggler()->whom, std::vector<int>{0});
  EXPECT_EQ(StragglerText(*shares.Straggler()),
            "rank 1 makes rank 0 wait: in 100 % of 50 looks it was elsewhere, mostly e, while that waited");
}

TEST(Shares, CountsUseBetweenTheFirstAndTheLastLook) {
  Shares shares;
  verdict::RankDoing doing = At(0, Stand::kElsewhere, "running", 1000);
  doing.bytes = 500;
  doing.faults = 7;
  doing.network = 1000;
  doing.loads = true;
  shares.Add({doing}, Clock::time_point());
  doing.processor_ms = 4000;
  doing.bytes = 2500;
  doing.faults = 27;
  doing.network = 5000;
  doing.resident = 64;
  doing.loads = false;
  doing.saves = true;
  shares.Add({doing}, Clock::time_point() + std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].processors, 1.5);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].bytes, 1000);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].faults, 10);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].network, 2000);
  EXPECT_EQ(shares.Ranks()[0].resident, 64);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].input, 0.5);
  EXPECT_DOUBLE_EQ(shares.Ranks()[0].saves, 0.5);
}

}  // namespace
}  // namespace dtrun::observe

#include "core/comm/shm/waiting.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace dtrun::shm {
namespace {

using Clock = std::chrono::steady_clock;

struct Side {
  alignas(kLine) std::atomic<std::uint32_t> word{0};
  std::atomic<std::uint32_t> sleepers{0};
};

// Two threads wait for each other in turns and always sleep: a lost wake-up costs a minute.
void TakeTurns(Ordering ordering) {
  constexpr std::uint32_t kTurns = 3000;
  constexpr std::chrono::minutes kLong(1);
  std::array<Side, 2> sides;
  const auto play = [&](Side& mine, Side& theirs) {
    for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
      Publish(mine.word, turn, mine.sleepers, ordering);
      for (;;) {
        Announce(theirs.sleepers, ordering);
        const std::uint32_t seen = theirs.word.load();
        if (Reached(seen, turn)) break;
        const auto start = Clock::now();
        Sleep(theirs.word, seen, kLong);
        ASSERT_LT(Clock::now() - start, kLong) << "in turn " << turn;
      }
    }
  };
  std::thread other([&] { play(sides[1], sides[0]); });
  play(sides[0], sides[1]);
  other.join();
}

TEST(Waiting, WakesWhoSleepsWhenThePublisherOrders) { TakeTurns(Ordering::kByPublisher); }

TEST(Waiting, WakesWhoSleepsWhenTheSleeperOrders) {
  if (BestOrdering() != Ordering::kBySleeper) GTEST_SKIP() << "the system has no membarrier";
  TakeTurns(Ordering::kBySleeper);
}

TEST(Waiting, CountsPastTheEndOfTheNumbers) {
  EXPECT_TRUE(Reached(5, 5));
  EXPECT_FALSE(Reached(4, 5));
  EXPECT_TRUE(Reached(2, UINT32_MAX));
  EXPECT_FALSE(Reached(UINT32_MAX, 2));
}

}  // namespace
}  // namespace dtrun::shm

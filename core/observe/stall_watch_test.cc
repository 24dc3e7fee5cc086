#include "core/observe/stall_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::observe {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

protocol::Inspected Used(std::vector<std::int64_t> ms, std::uint64_t calls = 0) {
  protocol::Inspected inspected;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    verdict::RankDoing doing;
    doing.rank = static_cast<int>(i);
    doing.processor_ms = ms[i];
    inspected.ranks.push_back(doing);
  }
  inspected.calls = calls;
  return inspected;
}

class StallWatchTest : public ::testing::Test {
 protected:
  void Watch(std::function<protocol::Inspected()> look, std::function<void()> then = {}) {
    watch_.emplace(loop_, policy_,
                   StallWatch::Events{[=, this](const std::function<void(const protocol::Inspected&)>& done,
                                                std::vector<int> closely) {
                                        closely_ = std::move(closely);
                                        if (++looks_ == 8) loop_.stop();
                                        done(look());
                                        if (then) then();
                                      },
                                      [this](const Stall& stall) { stalls_.push_back(stall); }});
    loop_.run();
  }

  boost::asio::io_context loop_;
  StallPolicy policy_{milliseconds(20), false};
  int looks_ = 0;
  std::vector<int> closely_;
  std::vector<Stall> stalls_;
  std::optional<StallWatch> watch_;
};

TEST_F(StallWatchTest, TellsOnceThatNothingMoves) {
  Watch([] { return Used({5, 7}); });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_GE(stalls_[0].standstill, milliseconds(20));
  EXPECT_THAT(stalls_[0].working, IsEmpty());
  EXPECT_EQ(stalls_[0].ranks.size(), 2u);
}

TEST_F(StallWatchTest, NamesTheRankThatWorks) {
  Watch([this] { return Used({5, 1000L * looks_}); });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_THAT(stalls_[0].working, ElementsAre(1));
}

TEST_F(StallWatchTest, LooksCloselyAtRanksThatKeepAJobFromItsEnd) {
  policy_.fails = true;
  std::vector<int> looked_closely_at;
  Watch([&, this] {
    protocol::Inspected inspected = Used({5, 1000L * looks_});
    if (!closely_.empty()) {
      looked_closely_at = closely_;
      inspected.ranks[1].stand = stacks::Stand::kWaits;
    }
    return inspected;
  });
  EXPECT_THAT(looked_closely_at, ElementsAre(1));
  ASSERT_FALSE(stalls_.empty());
  EXPECT_THAT(stalls_[0].working, IsEmpty());
}

TEST_F(StallWatchTest, KnowsOfARankWithALineWithoutStoppingIt) {
  policy_.fails = true;
  bool stopped = false;
  auto stand = stacks::Stand::kElsewhere;
  const auto look = [&, this] {
    stopped = stopped || !closely_.empty();
    protocol::Inspected inspected = Used({5, 1000L * looks_});
    inspected.ranks[1].in_source = true;
    inspected.ranks[1].stand = stand;
    return inspected;
  };
  Watch(look);
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_THAT(stalls_[0].working, ElementsAre(1));
  stand = stacks::Stand::kWaits;  // busily
  stalls_.clear();
  looks_ = 0;
  loop_.restart();
  Watch(look);
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_THAT(stalls_[0].working, IsEmpty());
  EXPECT_FALSE(stopped);
}

// It waits for messages busily, and sleeps in each step of its own.
TEST_F(StallWatchTest, TakesARankThatSleepsNowAndThenForOneAtWork) {
  policy_.fails = true;
  Watch([this] {
    protocol::Inspected inspected = Used({5, 1000L * looks_});
    inspected.ranks[1].stand = stacks::Stand::kWaits;
    inspected.ranks[1].scheduled.sleeps = looks_;
    return inspected;
  });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_THAT(stalls_[0].working, ElementsAre(1));
  EXPECT_THAT(closely_, IsEmpty());
}

TEST_F(StallWatchTest, TakesARankInADebuggerForOneAtWork) {
  Watch([] {
    protocol::Inspected inspected = Used({5, 5});
    inspected.ranks[1].phrase = "stopped by gdb (pid 12), in main at a.cc:3";
    return inspected;
  });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_THAT(stalls_[0].working, ElementsAre(1));
}

TEST_F(StallWatchTest, IsQuietWhileAllWork) {
  Watch([this] { return Used({1000L * looks_, 1000L * looks_}); });
  EXPECT_THAT(stalls_, IsEmpty());
}

TEST_F(StallWatchTest, IsQuietWhileCollectivesAreCalled) {
  Watch([this] { return Used({5, 5}, static_cast<std::uint64_t>(looks_)); });
  EXPECT_THAT(stalls_, IsEmpty());
}

TEST_F(StallWatchTest, IsQuietWhileRanksPrint) {
  Watch([] { return Used({5, 5}); }, [this] { watch_->Progress(); });
  EXPECT_THAT(stalls_, IsEmpty());
}

TEST_F(StallWatchTest, TellsOnceMoreWhenTheRankThatWorkedStandsStillToo) {
  Watch([this] { return Used({5, 1000L * std::min(looks_, 4)}); });
  ASSERT_EQ(stalls_.size(), 2u);
  EXPECT_THAT(stalls_[0].working, ElementsAre(1));
  EXPECT_THAT(stalls_[1].working, IsEmpty());
}

TEST_F(StallWatchTest, IsQuietWhileARankThatMostlySleepsMovesAFewBytes) {
  Watch([this] {
    protocol::Inspected seen = Used({5, 5});
    seen.ranks[0].bytes = looks_;
    return seen;
  });
  EXPECT_THAT(stalls_, IsEmpty());
}

protocol::Inspected In(const std::string& first, const std::string& second) {
  protocol::Inspected inspected = Used({5, 5});
  for (verdict::RankDoing& doing : inspected.ranks) {
    doing.stand = stacks::Stand::kWaits;
    doing.phrase = fmt::format("in {} at train.py:4", doing.rank == 0 ? first : second);
  }
  return inspected;
}

TEST_F(StallWatchTest, TellsOfADeadlockLongBeforeTheLimit) {
  policy_ = {std::chrono::hours(1), false, milliseconds(20)};
  Watch([] { return In("all_reduce", "broadcast"); });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_TRUE(stalls_[0].deadlock);
}

TEST_F(StallWatchTest, IsQuietWhileRanksWaitInCallsThatMayBelongTogether) {
  policy_ = {std::chrono::hours(1), false, milliseconds(20)};
  Watch([] { return In("recv", "send"); });
  EXPECT_THAT(stalls_, IsEmpty());
}

TEST_F(StallWatchTest, TellsAgainAfterProgress) {
  Watch(
      [] {
        return Used({5, 5});
      },
      [this] {
        if (looks_ == 4) watch_->Progress();
      });
  EXPECT_EQ(stalls_.size(), 2u);
}

}  // namespace
}  // namespace dtrun::observe

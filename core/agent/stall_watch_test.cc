#include "core/agent/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Inspected Used(std::vector<std::int64_t> ms, std::uint64_t calls = 0) {
  Inspected inspected;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    RankDoing doing;
    doing.rank = static_cast<int>(i);
    doing.processor_ms = ms[i];
    inspected.ranks.push_back(doing);
  }
  inspected.calls = calls;
  return inspected;
}

TEST(IdleBetween, TellsWhoWaitsFromWhoWorks) {
  EXPECT_THAT(IdleBetween(Used({100, 100}), Used({101, 9000}), seconds(10)), ElementsAre(0));
  EXPECT_THAT(IdleBetween(Used({100, 100}), Used({400, 9000}), seconds(10)), IsEmpty());
  Inspected reads = Used({100});
  reads.ranks[0].bytes = 10 << 20;
  EXPECT_THAT(IdleBetween(Used({100}), reads, seconds(10)), IsEmpty());
  // Its helpers have ended meanwhile, and their times are gone.
  EXPECT_THAT(IdleBetween(Used({5000}), Used({100}), seconds(10)), ElementsAre(0));
}

class StallWatchTest : public ::testing::Test {
 protected:
  void Watch(std::function<Inspected()> look, std::function<void()> then = {}) {
    watch_.emplace(loop_, StallPolicy{milliseconds(20), false},
                   StallWatch::Events{[=, this](const std::function<void(const Inspected&)>& done) {
                                        if (++looks_ == 12) loop_.stop();
                                        done(look());
                                        if (then) then();
                                      },
                                      [this](const Stall& stall) { stalls_.push_back(stall); }});
    loop_.run();
  }

  boost::asio::io_context loop_;
  int looks_ = 0;
  std::vector<Stall> stalls_;
  std::optional<StallWatch> watch_;
};

TEST_F(StallWatchTest, TellsOnceThatNothingMoves) {
  Watch([] { return Used({5, 7}); });
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_GE(stalls_[0].quiet, milliseconds(20));
  EXPECT_THAT(stalls_[0].working, IsEmpty());
  EXPECT_EQ(stalls_[0].ranks.size(), 2u);
}

TEST_F(StallWatchTest, NamesTheRankThatWorks) {
  Watch([this] { return Used({5, 1000L * looks_}); });
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

TEST_F(StallWatchTest, TellsAgainAfterProgress) {
  Watch(
      [] {
        return Used({5, 5});
      },
      [this] {
        if (looks_ == 5) watch_->Progress();
      });
  EXPECT_EQ(stalls_.size(), 2u);
}

}  // namespace
}  // namespace dtrun::agent

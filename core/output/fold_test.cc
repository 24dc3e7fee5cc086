#include "core/output/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "core/output/testing.h"

namespace dtrun::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FoldTest : public ::testing::Test {
 protected:
  FoldTest() {
    for (int rank = 0; rank < 3; ++rank) fold_.Add(rank);
  }
  void Take(int rank, const char* text, Stream stream = Stream::kOut) {
    fold_.Take(rank, stream, text, false);
  }
  void WaitAndFlush() {
    std::this_thread::sleep_for(Fold::kPatience);
    fold_.Flush();
  }

  FakeConsole console_{false};
  Fold fold_{3, Style{}, console_};
};

TEST_F(FoldTest, PrintsALineOnceEveryRankHasPrintedIt) {
  Take(2, "ready");
  Take(0, "ready");
  EXPECT_THAT(console_.Texts(), IsEmpty());
  Take(1, "ready");
  EXPECT_THAT(console_.Texts(), ElementsAre("[0-2] ready"));
}

TEST_F(FoldTest, DoesNotWaitForRanksThatHaveGoneOn) {
  Take(0, "loss 1");
  Take(1, "loss 2");
  Take(2, "loss 1");
  Take(1, "done");
  Take(0, "done");
  EXPECT_THAT(console_.Texts(), ElementsAre("[0,2] loss 1"));
  Take(2, "done");
  EXPECT_THAT(console_.Texts(), ElementsAre("[0,2] loss 1", "[  1] loss 2", "[0-2] done"));
}

TEST_F(FoldTest, KeepsTheOrderOfEachRank) {
  Take(0, "a");
  Take(0, "b");
  Take(1, "b");
  Take(1, "a");
  WaitAndFlush();
  EXPECT_THAT(console_.Texts(), ElementsAre("[  0] a", "[0-1] b", "[  1] a"));
}

TEST_F(FoldTest, FindsEqualLinesBehindThoseThatDiffer) {
  for (int rank = 0; rank < 3; ++rank) {
    Take(rank, "begin");
    Take(rank, ("loss " + std::to_string(rank)).c_str());
    Take(rank, "end");
  }
  EXPECT_THAT(console_.Texts(),
              ElementsAre("[0-2] begin", "[  0] loss 0", "[  1] loss 1", "[  2] loss 2", "[0-2] end"));
}

TEST_F(FoldTest, KeepsEqualLinesOfOneRankApart) {
  for (int rank = 0; rank < 3; ++rank) {
    Take(rank, "x");
    Take(rank, "x");
  }
  EXPECT_THAT(console_.Texts(), ElementsAre("[0-2] x", "[0-2] x"));
}

TEST_F(FoldTest, KeepsTheStreamsApart) {
  Take(0, "x", Stream::kErr);
  Take(1, "x");
  WaitAndFlush();
  EXPECT_EQ(console_.lines.size(), 2u);
  EXPECT_EQ(console_.lines.front().first, Stream::kErr);
}

TEST_F(FoldTest, WaitsOnlySoLongForTheOthers) {
  Take(0, "only here");
  fold_.Flush();
  EXPECT_THAT(console_.Texts(), IsEmpty());
  WaitAndFlush();
  EXPECT_THAT(console_.Texts(), ElementsAre("[  0] only here"));
}

TEST_F(FoldTest, DoesNotWaitForRanksThatHaveEnded) {
  Take(0, "x");
  Take(1, "x");
  fold_.Remove(2);
  EXPECT_THAT(console_.Texts(), ElementsAre("[0-1] x"));
  Take(2, "late all the same");
  WaitAndFlush();
  EXPECT_THAT(console_.Texts(), ElementsAre("[0-1] x", "[  2] late all the same"));
}

TEST_F(FoldTest, HoldsNoMoreThanItMay) {
  for (std::size_t i = 0; i <= Fold::kLines; ++i) Take(0, std::to_string(i).c_str());
  EXPECT_THAT(console_.Texts(), ElementsAre("[  0] 0"));
  Take(0, std::string(Fold::kBytes, 'x').c_str());
  EXPECT_EQ(console_.lines.size(), Fold::kLines + 1);
}

TEST(Fold, PrintsWhatWaitsAtItsEnd) {
  FakeConsole console(false);
  { Fold(2, Style{}, console).Take(1, Stream::kOut, "last words", false); }
  EXPECT_THAT(console.Texts(), ElementsAre("[  1] last words"));
}

}  // namespace
}  // namespace dtrun::output

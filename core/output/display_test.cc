#include "core/output/display.h"

#include <gtest/gtest.h>

#include <string>

namespace dtrun::output {
namespace {

std::string WithoutMoves(std::string_view text) {
  std::string out;
  AppendWithoutMoves(text, &out);
  return out;
}

TEST(CutPoint, NeverEndsInsideACharacter) {
  const std::string text = "aé€😀";  // 1 + 2 + 3 + 4 bytes
  const std::size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t limit = 1; limit < std::size(expected); ++limit) {
    EXPECT_EQ(CutPoint(text, limit), expected[limit]) << limit;
  }
}

TEST(CutPoint, CutsBytesThatAreNotUtf8AtTheLimit) {
  EXPECT_EQ(CutPoint(std::string(10, '\x80'), 6), 6u);
  EXPECT_EQ(CutPoint("\x80\x80\x80", 2), 2u);
}

TEST(WholeCharacters, LeavesOutACharacterThatHasOnlyBegun) {
  const std::string text = "a😀";
  EXPECT_EQ(WholeCharacters(text), text);
  for (std::size_t size = 1; size < text.size(); ++size) {
    EXPECT_EQ(WholeCharacters(std::string_view(text).substr(0, size)), "a") << size;
  }
  EXPECT_EQ(WholeCharacters(""), "");
  EXPECT_EQ(WholeCharacters("\x80\x80\x80\x80"), "\x80\x80\x80\x80");
}

TEST(FitColumns, CountsColumnsAndNotBytes) {
  EXPECT_EQ(FitColumns("abcdef", 4), "abcd");
  EXPECT_EQ(FitColumns("éééé", 3), "ééé");
  EXPECT_EQ(FitColumns("█▌ 50%", 4), "█▌ 5");
  EXPECT_EQ(FitColumns("日本語", 5), "日本");
  EXPECT_EQ(FitColumns("e\u0301x", 1), "e\u0301");
  EXPECT_EQ(FitColumns("🚀🚀", 3), "🚀");
}

TEST(FitColumns, KeepsColoursAndResetsThem) {
  EXPECT_EQ(FitColumns("\033[1;31mred\033[0m text", 3), "\033[1;31mred\033[0m\033[0m");
  EXPECT_EQ(FitColumns("\033[31mred text", 3), "\033[31mred\033[0m");
}

TEST(FitColumns, LeavesOutWhatWouldLeaveTheLine) {
  EXPECT_EQ(FitColumns("a\033[2K\033[Ab\bc\x7f\td\xff\033]0;title\ae\033", 80), "abc d?e");
  EXPECT_EQ(FitColumns("a\u009b2Jb", 80), "a2Jb");  // the one-character form of ESC [
}

TEST(AppendWithoutMoves, DropsCursorMovesAndErasures) {
  EXPECT_EQ(WithoutMoves("\033[2K\033[1Gdone\033[A\033[?25l"), "done");
  EXPECT_EQ(WithoutMoves("plain"), "plain");
}

TEST(AppendWithoutMoves, KeepsColoursLinksAndUnfinishedSequences) {
  for (const std::string text : {"\033[31mred\033[m", "\033]8;;http://x\033\\link\033]8;;\033\\", "a\033[12",
                                 "a\033", "\033[1\x01z", "\033(B"}) {
    EXPECT_EQ(WithoutMoves(text), text);
  }
}

TEST(Blank, SeesThroughErasuresAndColours) {
  EXPECT_TRUE(Blank(""));
  EXPECT_TRUE(Blank("   \033[K\033[0m "));
  EXPECT_FALSE(Blank("  x"));
  EXPECT_FALSE(Blank("\t"));
}

}  // namespace
}  // namespace dtrun::output

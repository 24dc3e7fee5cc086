#include "core/output/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace dtrun::output {
namespace {

using ::testing::ElementsAre;

std::string WithoutControls(std::string_view text) {
  std::string out;
  AppendTamed(text, &out);
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
  EXPECT_EQ(FitColumns("a\u009b2Jb\u202ec", 80), "abc");  // the single-character form of ESC [
}

TEST(AppendTamed, KeepsTextTabsNewlinesAndColours) {
  for (const std::string text : {"plain\ttext\nnext", "größer € 日本 😀 e\u0301", "\033[31mred\033[m",
                                 "\033[1;4;38;5;8mgrey\033[0m", "\033[38;2;8;8;8;48;5;8m", "\033[;7m"}) {
    EXPECT_EQ(WithoutControls(text), text);
  }
}

TEST(AppendTamed, LeavesOutWholeSequences) {
  for (const std::string sequence : {"\033]0;title\a",
                                     "\033]52;c;cm0=\033\\",
                                     "\033]52;c;é\u009c",
                                     "\033Pq#0\a\033\\",
                                     "\033Xsos\033\\",
                                     "\033^pm\033\\",
                                     "\033_apc\033\\",
                                     "\033c",
                                     "\033(B",
                                     "\033#8",
                                     "\033[2J",
                                     "\033[?1049h",
                                     "\033[6n",
                                     "\033[>4;1m",
                                     "\033[?4m",
                                     "\033[4:3m",
                                     "\033[1 m",
                                     "\033[2K\033[1G\033[A",
                                     "\u009b31m",
                                     "\u009d0;title\a",
                                     "\u0090q\u009c",
                                     "\033]8;;http://x\033\\"}) {
    EXPECT_EQ(WithoutControls("a" + sequence + "b"), "ab") << ::testing::PrintToString(sequence);
  }
}

TEST(AppendTamed, LeavesOutConcealment) {
  for (const std::string sequence :
       {"8", "08", "0;8", "8;1", "38;8", "38;5;1;8", "38;2;1;2;3;8", "38;5;;;8", "4294967304", "1;8"}) {
    EXPECT_EQ(WithoutControls("a\033[" + sequence + "mb"), "ab") << sequence;
  }
}

TEST(AppendTamed, LeavesOutOtherControls) {
  EXPECT_EQ(WithoutControls(std::string("a\0\a\b\r\016\017\x7f"
                                        "b",
                                        9)),
            "ab");
  EXPECT_EQ(WithoutControls("a\u0085\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
                            "b"),
            "ab");
}

TEST(AppendTamed, ShowsWhatIsNoUtf8) {
  EXPECT_EQ(WithoutControls("a\x9b"
                            "2J\xff\xc3"),
            "a?2J??");
  EXPECT_EQ(WithoutControls("\xe0\x80\x9b|\xed\xa0\x80|\xf4\x90\x80\x80|"), "???|???|????|") << "overlong";
}

TEST(AppendTamed, EndsASequenceWithoutAnEndAtItsLine) {
  EXPECT_EQ(WithoutControls("a\033]0;title\nb\033[1\nc\033\nd\033P\033[31me\033]x"), "a\nb\nc\nd\033[31me");
  EXPECT_EQ(WithoutControls("a\033[1\x01z\033]x\030y"), "azy");
}

TEST(AppendTamed, LeavesNothingThatPutTogetherIsASequence) {
  EXPECT_EQ(WithoutControls("\033\033[2J[2J\033\033]0;x\a]"), "[2J]");
}

TEST(Tamed, EndsColoursWithTheirLine) {
  EXPECT_EQ(TamedMessage("host \033[31mred\n    | \033[31mred\n\033]0;x\anext: a\tb\n"),
            "host red\n    | \033[31mred\033[0m\nnext: a\tb\n");
  EXPECT_EQ(Tamed("a\n\033[30;40mb\nc\n"), "a\n\033[30;40mb\033[0m\nc\n");
  EXPECT_EQ(Tamed("\033[31mred\033[0m and\033]0;title\a \033[7mmore\033[m."),
            "\033[31mred\033[0m and \033[7mmore\033[m.");
}

std::vector<std::string> Screen(const std::vector<std::pair<std::string, bool>>& lines) {
  TamedLines tamed;
  std::vector<std::string> screen;
  for (const auto& [text, continues] : lines) tamed.Append(text, continues, &screen.emplace_back());
  return screen;
}

TEST(TamedLines, EndColoursAndSetThemAgain) {
  EXPECT_THAT(
      Screen({{"a", false}, {"\033[1mb\033[31mc", false}, {"d", false}, {"e\033[0mf", false}, {"g", false}}),
      ElementsAre("a", "\033[1mb\033[31mc\033[0m", "\033[1m\033[31md\033[0m", "\033[1m\033[31me\033[0mf",
                  "g"));
  EXPECT_THAT(Screen({{"\033[31ma\033[;1mb", false}, {"\033[0;4mc", false}, {"\033[md", false}, {"", false}}),
              ElementsAre("\033[31ma\033[;1mb\033[0m", "\033[;1m\033[0;4mc\033[0m", "\033[0;4m\033[md", ""));
}

TEST(TamedLines, KeepFewColoursInMind) {
  TamedLines tamed;
  std::string out;
  for (int i = 0; i < 1000; ++i) tamed.Append("\033[31mx\033[39m", false, &out);
  out.clear();
  tamed.Append("x", false, &out);
  EXPECT_LT(out.size(), 150u);
}

TEST(TamedLines, LeaveOutTheWholeTextOfASequenceInALongLine) {
  EXPECT_THAT(Screen({{"a\033]1337;File=:AAAA", false}, {"BBBB", true}, {"CC\ab", true}, {"c", false}}),
              ElementsAre("a", "", "b", "c"));
  EXPECT_THAT(Screen({{"a\033Pq#0", false}, {"#1\a#2", true}, {"\033\\b", true}}), ElementsAre("a", "", "b"));
  EXPECT_THAT(Screen({{"a\033]0;ti", false},
                      {"tle\ab", false},
                      {"c\033]0;stray", false},
                      {"shown", false},
                      {"\ashown", false}}),
              ElementsAre("a", "b", "c", "shown", "shown"));
  EXPECT_THAT(Screen({{"\033]0;stray", false}, {"shown \033[1mbold\033[m\a", false}}),
              ElementsAre("", "shown \033[1mbold\033[m"));
}

TEST(Blank, SeesThroughErasuresAndColours) {
  EXPECT_TRUE(Blank(""));
  EXPECT_TRUE(Blank("   \033[K\033[0m "));
  EXPECT_FALSE(Blank("  x"));
  EXPECT_FALSE(Blank("\t"));
}

}  // namespace
}  // namespace dtrun::output

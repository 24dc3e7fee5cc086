#include "core/base/text.h"

#include <gmock/gmock.h>

namespace dtrun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, TrimsWhiteSpaceOfAllKindsAtBothEnds) {
  EXPECT_EQ(Trim(" \t\r\n\v\fa b\t \r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Text, TrimsNothingThatIsNoWhiteSpaceOfAscii) { EXPECT_EQ(Trim("\xc2\xa0x"), "\xc2\xa0x"); }

TEST(Text, SplitsIntoAllPieces) {
  EXPECT_THAT(Split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(Split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
  EXPECT_THAT(Split("a", ','), ElementsAre("a"));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
}

TEST(Text, EndsEveryLineButTheLastWithALineFeed) {
  EXPECT_THAT(LinesOf("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(LinesOf("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(LinesOf("\n"), ElementsAre(""));
  EXPECT_THAT(LinesOf(""), IsEmpty());
}

TEST(Text, IndentsAllLinesButTheFirst) { EXPECT_EQ(Indented("a\nb\n\nc", "  "), "a\n  b\n  \n  c"); }

TEST(Text, KnowsTheNameOfAFile) {
  EXPECT_EQ(FileName("/usr/bin/env"), "env");
  EXPECT_EQ(FileName("env"), "env");
  EXPECT_EQ(FileName("/usr/"), "");
}

TEST(Text, KnowsHexadecimalNumbers) {
  EXPECT_TRUE(IsLowerHex("0af9"));
  for (const std::string_view text : {"", "0AF9", "0x1", "g"}) EXPECT_FALSE(IsLowerHex(text)) << text;
}

TEST(Text, KnowsLettersAndDigitsOfAscii) {
  EXPECT_TRUE(IsDigits("0129"));
  for (const std::string_view text : {"", "1a", "-1", "\xc2\xb2"}) EXPECT_FALSE(IsDigits(text)) << text;
  EXPECT_TRUE(IsLetter('a') && IsLetter('Z'));
  EXPECT_FALSE(IsLetter('_') || IsLetter('1') || IsLetter('\xc3'));
  EXPECT_EQ(Lowercase("NCCL_Ä1z"), "nccl_Ä1z");
  EXPECT_EQ(ToUpper('z'), 'Z');
  EXPECT_EQ(ToUpper('_'), '_');
}

}  // namespace
}  // namespace dtrun

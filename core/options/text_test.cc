#include "core/options/text.h"

#include <gtest/gtest.h>

namespace dtrun::options {
namespace {

using namespace std::string_literals;

TEST(FindInvalidUtf8, AcceptsEveryLengthOfCharacter) {
  EXPECT_EQ(FindInvalidUtf8(""), std::string::npos);
  EXPECT_EQ(FindInvalidUtf8("a\u00e9\u20ac\U0001f600\U0010ffff"), std::string::npos);
}

TEST(FindInvalidUtf8, PointsAtTheFirstBadByte) {
  EXPECT_EQ(FindInvalidUtf8("ab\xff"), 2u);
  EXPECT_EQ(FindInvalidUtf8("a\xc3"), 1u) << "cut character";
  EXPECT_EQ(FindInvalidUtf8("\xc0\x80"), 0u) << "overlong, 2 bytes";
  EXPECT_EQ(FindInvalidUtf8("\xe0\x80\x80"), 0u) << "overlong, 3 bytes";
  EXPECT_EQ(FindInvalidUtf8("\xed\xa0\x80"), 0u) << "surrogate";
  EXPECT_EQ(FindInvalidUtf8("\xf0\x80\x80\x80"), 0u) << "overlong, 4 bytes";
  EXPECT_EQ(FindInvalidUtf8("\xf4\x90\x80\x80"), 0u) << "beyond the last character";
  EXPECT_EQ(FindInvalidUtf8("\x80"), 0u) << "continuation without a start";
}

TEST(Quote, EscapesLikeToml) {
  EXPECT_EQ(Quote("a \"b\" \\ \n\t\x1b é"), "\"a \\\"b\\\" \\\\ \\n\\t\\u001b é\"");
  EXPECT_EQ(Quote("\u202e\u009b"), "\"\\u202e\\u009b\"");
  EXPECT_EQ(Quote("\xff"), "\"\\xff\"");
  EXPECT_EQ(Quote("\0"s), "\"\\u0000\"");
}

TEST(QuoteShort, CutsAtACharacter) {
  EXPECT_EQ(QuoteShort("short"), "\"short\"");
  EXPECT_EQ(QuoteShort(std::string(59, 'a') + "éé"), "\"" + std::string(59, 'a') + "\"...");
}

TEST(QuoteShort, ShowsNoSecret) {
  EXPECT_EQ(QuoteShort("DB_PASSWORD:sekret1"), "\"DB_PASSWORD:(secret)\"");
  EXPECT_EQ(QuoteShort("ftp://ann:sekret1@" + std::string(60, 'a')).find("sekret"), std::string::npos);
}

TEST(BooleanMeant, KnowsOtherLanguages) {
  for (const char* word : {"True", "TRUE", "yes", "On", "1"}) EXPECT_EQ(BooleanMeant(word), "true") << word;
  for (const char* word : {"False", "no", "OFF", "0"}) EXPECT_EQ(BooleanMeant(word), "false") << word;
  EXPECT_EQ(BooleanMeant("maybe"), "");
}

TEST(QuoteAll, JoinsWithCommas) {
  EXPECT_EQ(QuoteAll(std::vector<std::string>{"a", "b"}), "\"a\", \"b\"");
  EXPECT_EQ(QuoteAll(std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace dtrun::options

#include "core/spec/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::spec {
namespace {

using ::testing::HasSubstr;
using Kind = Node::Kind;

Node Parse(std::string_view text) {
  auto parsed = ParseToml(text);
  const auto* error = std::get_if<SyntaxError>(&parsed);
  EXPECT_EQ(error, nullptr) << error->message;
  return error == nullptr ? std::get<Node>(parsed) : Node();
}

SyntaxError Refuse(std::string_view text) {
  auto parsed = ParseToml(text);
  const auto* error = std::get_if<SyntaxError>(&parsed);
  return error == nullptr ? SyntaxError{{}, "accepted"} : *error;
}

TEST(ParseToml, KeepsEveryKindWithPlacesInTheOrderOfTheFile) {
  const Node root =
      Parse("[z]\n  s = \"é\"\n  i = 4\n[a]\nf = 1.5\nb = true\nl = [1, \"x\"]\nd = 2024-01-02\n");
  ASSERT_EQ(root.members.size(), 2u);
  const Node& z = root.members[0].value;
  EXPECT_EQ(root.members[0].key, "z");
  EXPECT_EQ(z.members[0].value.text, "é");
  EXPECT_EQ(z.members[0].at.line, 2);
  EXPECT_EQ(z.members[0].at.column, 3);
  EXPECT_EQ(z.members[0].value.at.column, 7);
  EXPECT_EQ(z.members[1].value.number, 4);
  const Node& a = root.members[1].value;
  EXPECT_EQ(a.members[0].value.real, 1.5);
  EXPECT_TRUE(a.members[1].value.flag);
  EXPECT_EQ(a.members[2].value.items[1].text, "x");
  EXPECT_EQ(a.members[2].value.items[1].at.column, 9);
  EXPECT_EQ(a.members[3].value.kind, Kind::kDate);
  EXPECT_EQ(a.members[3].value.text, "2024-01-02");
}

TEST(ParseToml, PointsAtASyntaxError) {
  const SyntaxError error = Refuse("[job]\ncommand = [\"a\"\nenv = 1\n");
  EXPECT_EQ(error.at.line, 3);
  EXPECT_THAT(error.message, HasSubstr("syntax error in array: "));
}

TEST(ParseToml, PointsAtAByteThatIsNotUtf8) {
  const SyntaxError error = Refuse("a = 1\né = \"\xff\"\n");
  EXPECT_EQ(error.at.line, 2);
  EXPECT_EQ(error.at.column, 6);
  EXPECT_EQ(error.message, "byte 0xff at offset 12 is not UTF-8; save the file as UTF-8");
  EXPECT_THAT(Refuse("\xff\xfe"
                     "a")
                  .message,
              HasSubstr("this looks like UTF-16"));
}

TEST(ParseToml, SurvivesAnyDepth) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  EXPECT_EQ(Refuse(key + " = 1").message, "key with more than 16 parts");
  EXPECT_EQ(Refuse("[" + key + "]").message, "key with more than 16 parts");
  std::string quoted = "x";
  for (int i = 0; i < 40; ++i) quoted += ".\"=\\\"\".'#'";
  EXPECT_EQ(Refuse(quoted + " = 1").message, "key with more than 16 parts");
  EXPECT_THAT(Refuse("a = " + std::string(100'000, '[')).message, HasSubstr("nested deeper than 64 levels"));
  EXPECT_EQ(Refuse("a = " + std::string(100, '[') + std::string(100, ']')).message,
            "values nested deeper than 64 levels");
}

TEST(ParseToml, DoesNotCountDotsInsideStringsAndComments) {
  const std::string dots(40, '.');
  const std::string text = "# " + dots + "\na = \"" + dots + "\"\nb = '" + dots + "'\nc = \"\"\"\n" + dots +
                           "\n\"\"\"\nd = '''" + dots + "'''\ne = [1.5, 2.5]\n";
  EXPECT_EQ(Parse(text).members.size(), 5u);
}

TEST(ParseTomlValue, ReadsExactlyOneValue) {
  EXPECT_EQ(ParseTomlValue("\"x\"")->text, "x");
  EXPECT_EQ(ParseTomlValue("[1]")->items.size(), 1u);
  EXPECT_FALSE(ParseTomlValue("gloo").has_value());
  EXPECT_FALSE(ParseTomlValue("").has_value());
  EXPECT_FALSE(ParseTomlValue("1\nother = 2").has_value());
  EXPECT_EQ(ParseTomlValue("1 # c")->number, 1);
}

TEST(FoundText, NamesKindAndValueButNoSecret) {
  EXPECT_EQ(FoundText(*ParseTomlValue("\"two\"")), "string \"two\"");
  EXPECT_EQ(FoundText(*ParseTomlValue("\"two\""), true), "a string");
  EXPECT_EQ(FoundText(*ParseTomlValue("4")), "integer 4");
  EXPECT_EQ(FoundText(*ParseTomlValue("1.5")), "number 1.5");
  EXPECT_EQ(FoundText(*ParseTomlValue("true")), "true");
  EXPECT_EQ(FoundText(*ParseTomlValue("[]")), "a list");
  EXPECT_EQ(FoundText(*ParseTomlValue("{}")), "a table");
  EXPECT_EQ(FoundText(*ParseTomlValue("10:00:00")), "date 10:00:00");
}

// A string in triple quotes may end in quotes of its own; the text after it is no longer string.
TEST(ParseToml, BoundsKeysBehindStringsThatEndInQuotes) {
  std::string deep = "k";
  for (int i = 0; i < 120'000; ++i) deep += ".k";
  for (const char* quotes : {"\"\"\"", "'''"}) {
    for (std::size_t more = 0; more <= 2; ++more) {
      const std::string text = std::string(quotes) + "text" + std::string(more, *quotes) + quotes;
      const auto parsed = ParseToml("x = { a = " + text + ", " + deep + " = 1 }");
      const auto* error = std::get_if<SyntaxError>(&parsed);
      ASSERT_NE(error, nullptr) << text;
      EXPECT_EQ(error->message, "key with more than 16 parts") << text;
    }
  }
}

}  // namespace
}  // namespace dtrun::spec

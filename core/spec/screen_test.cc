#include <gtest/gtest.h>

#include "core/spec/document.h"

namespace dtrun::spec {
namespace {

SyntaxError Refused(std::string_view text) {
  const auto screened = Screen(text);
  const auto* error = std::get_if<SyntaxError>(&screened);
  return error == nullptr ? SyntaxError{{}, "nothing is wrong"} : *error;
}

std::string Pass(std::string_view text) {
  const auto screened = Screen(text);
  const auto* error = std::get_if<SyntaxError>(&screened);
  return error == nullptr ? std::get<std::string>(screened) : error->message;
}

// toml++ asserts in all of these; without assertions its behaviour is undefined.
TEST(Screen, RefusesTablesWithoutAName) {
  for (const char* header : {"[=", "[#]", "[.a]", "[[,]]", "[ \t=]", "[[ {a}]]", "[\x01]", "  [\\]"}) {
    const std::string text = std::string("a = 1\n") + header;
    EXPECT_EQ(Refused(text).at.line, 2) << header;
    EXPECT_TRUE(Refused(text).message.starts_with("syntax error in table header: a name that begins with \""))
        << Refused(text).message;
  }
  EXPECT_EQ(Refused("[[ ;").at.column, 4);
  for (const char* header : {"[]", "[\n]", "[[\r\n]]", "[ ]"})
    EXPECT_EQ(Refused(header).message, "syntax error in table header: the table has no name");
}

TEST(Screen, RefusesNulBytes) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(Refused("[job]\na = [\"tr\0ue\"]\n"sv).message, "a NUL byte at offset 14; remove it");
  EXPECT_EQ(Refused("[job]\na = [\"tr\0ue\"]\n"sv).at.line, 2);
}

TEST(Screen, LetsArraysBeginAsTheyLike) {
  for (const char* text :
       {"a = [\n[1],\n [+1, {b = 1}],\n[\n]]\n[t]", "a = {b = [\n[.1]]}\n", "[a]\n[\"é\"]\n['.']",
        "a = '''\n[=]'''", "a = \"\"\"\n[=]\n\"\"\"", "# [=]\n[ a . b ]\n[[ -0 ]]", "", "["}) {
    EXPECT_EQ(Pass(text), text);
  }
}

TEST(Screen, RefusesCharactersBeyondAsciiOutsideOfStrings) {
  for (const char* text : {"a = é", "é = 1", "[é]", "a = [1, é]", "a = 1 é # x", "a\xc2\xa0= 1"})
    EXPECT_NE(Refused(text).message.find(text[0] == '[' ? "needs quotes" : "outside of a string"),
              std::string::npos)
        << Refused(text).message;
  const SyntaxError error = Refused("# é\na = é");
  EXPECT_EQ(error.at.line, 2);
  EXPECT_EQ(error.at.column, 5);
  EXPECT_EQ(error.message,
            "syntax error: \"é\" is outside of a string; put quotes around the key or the value that it "
            "belongs to");
  for (const char* text : {"a = 'é' # é", "\"é\" = \"é\\\"é\"",
                           "\xef\xbb\xbf"
                           "a = 1",
                           "a = '''é''é'''", "a = \"\"\"é\"\"\"\"\"\nb = 1"})
    EXPECT_EQ(Pass(text), text);
}

// toml++ then reads ASCII there, and the value is the same.
TEST(Screen, EscapesWhatFollowsALineThatGoesOn) {
  EXPECT_EQ(Pass("a = \"\"\"x\\\n  é\"\"\""), "a = \"\"\"x\\\n  \\U000000e9\"\"\"");
  EXPECT_EQ(Pass("a = \"\"\"x\\ \r\n\n\xf0\x9f\x98\x80 \\\né\"\"\""),
            "a = \"\"\"x\\ \r\n\n\\U0001f600 \\\n\\U000000e9\"\"\"");
  EXPECT_EQ(Refused("a = \"\"\"\\é\"\"\"").at.column, 9);
  const auto parsed = ParseToml("a = \"\"\"x\\\n  é€\\\n \xe2\x82\xac\"\"\"");
  ASSERT_TRUE(std::holds_alternative<Node>(parsed)) << std::get<SyntaxError>(parsed).message;
  EXPECT_EQ(std::get<Node>(parsed).members.at(0).value.text, "xé€€");
}

TEST(Screen, EndsWithTheText) {
  for (const char* text :
       {"a = \"", "a = \"\\", "a = \"\"\"\\", "a = \"\"\"\\\n", "a = \"\"\"\\ ", "'", "'''", "[[", "[[ "})
    EXPECT_EQ(Pass(text), text);
}

}  // namespace
}  // namespace dtrun::spec

#include "core/base/secret_value.h"

#include <gtest/gtest.h>

#include <string>

namespace dtrun {
namespace {

// The value of `name` in a text that starts with it.
std::string ValueOf(const std::string& name, const std::string& rest) {
  const std::string text = name + rest;
  const auto value = FindNamedValue(text, 0, name.size());
  return value ? text.substr(value->begin, value->size) : "(none)";
}

TEST(SecretValue, IsReadAsItIsWritten) {
  EXPECT_EQ(ValueOf("a", "=1 x"), "1");
  EXPECT_EQ(ValueOf("a", " = 1 x"), "1 x") << "the line of a file";
  EXPECT_EQ(ValueOf("a", ": 1 x"), "1");
  EXPECT_EQ(ValueOf("--abc", "   1 x"), "1");
  EXPECT_EQ(ValueOf("a", "= 'b c' d"), "b c");
  EXPECT_EQ(ValueOf("a", R"(\": \"b\", c)"), "b");
  EXPECT_EQ(ValueOf("a", R"(="b\"c" d)"), R"(b\"c)");
  EXPECT_EQ(ValueOf("a", R"(='b\' d)"), R"(b\)");
  EXPECT_EQ(ValueOf("a", "={b;c};d"), "{b;c}");
}

TEST(SecretValue, NeedNotBeThere) {
  for (const char* rest : {"", " ", "=", " = ", ":", " == 1", " 1", "= 1", " : 1", "=\"\"", "\"", "\\"}) {
    EXPECT_EQ(ValueOf("a", rest), "(none)") << rest;
  }
}

TEST(SecretValue, MayLackItsEnd) {
  EXPECT_EQ(ValueOf("a", "=\"b c"), "b c");
  EXPECT_EQ(ValueOf("a", "=[b c"), "[b");
  EXPECT_EQ(ValueOf("a", "=\"\"\"b"), "b");
}

}  // namespace
}  // namespace dtrun

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/options/text.h"

namespace dtrun::options {
namespace {

using ::testing::HasSubstr;

class ExpandPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HOME", "/home/me", 1);
    ::setenv("SCRATCH_OF_TEST", "/scratch", 1);
    ::unsetenv("NOWHERE_OF_TEST");
  }
  static std::string ErrorOf(const char* text) {
    const auto path = ExpandPath(text);
    return path ? "no error: " + *path : path.error().text;
  }
};

TEST_F(ExpandPathTest, PutsHomeAndVariablesIn) {
  for (const auto& [text, path] : {std::pair("~", "/home/me"),
                                   {"~/runs", "/home/me/runs"},
                                   {"a~/b", "a~/b"},
                                   {"${SCRATCH_OF_TEST}/runs", "/scratch/runs"},
                                   {"a/${SCRATCH_OF_TEST}", "a//scratch"},
                                   {"cost$$", "cost$"},
                                   {"plain/path", "plain/path"},
                                   {"", ""}})
    EXPECT_EQ(*ExpandPath(text), path);
}

TEST_F(ExpandPathTest, SaysWhatItCannotPutIn) {
  EXPECT_THAT(ErrorOf("~you/x"), HasSubstr("in the path \"~you/x\", '~' stands for your own home only"));
  EXPECT_THAT(ErrorOf("$HOME/x"), HasSubstr("a variable is written ${NAME}"));
  EXPECT_THAT(ErrorOf("${HOME/x"), HasSubstr("a variable is written ${NAME}"));
  EXPECT_THAT(ErrorOf("${NOWHERE_OF_TEST}/x"), HasSubstr("the variable NOWHERE_OF_TEST is not set"));
  ::unsetenv("HOME");
  EXPECT_THAT(ErrorOf("~/x"), HasSubstr("HOME, which is not set"));
}

}  // namespace
}  // namespace dtrun::options

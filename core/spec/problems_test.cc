#include "core/spec/problems.h"

#include <gtest/gtest.h>

namespace dtrun::spec {
namespace {

TEST(Problems, AreGivenBackInTheOrderOfAReader) {
  Problems problems;
  problems.Add({DTRUN_ORIGIN_COMMAND_LINE, {2, 0}, "--set b"}, "6");
  problems.Add({DTRUN_ORIGIN_COMMAND_LINE, {1, 0}, "--set z"}, "5");
  problems.Add({DTRUN_ORIGIN_ENVIRONMENT, {}, "DTRUN_CONFIG_B"}, "4");
  problems.Add({DTRUN_ORIGIN_FILE, {10, 1}, "t:10:1"}, "3");
  problems.Add({DTRUN_ORIGIN_FILE, {9, 5}, "t:9:5"}, "2");
  problems.Add({DTRUN_ORIGIN_FILE, {9, 2}, "t:9:2"}, "1");
  std::string order;
  for (const Problem& problem : std::move(problems).Take()) order += problem.message;
  EXPECT_EQ(order, "123456");
}

TEST(Problems, StayOnOneLineWhateverTheUserWrote) {
  Problems problems;
  problems.Add({DTRUN_ORIGIN_COMMAND_LINE, {1, 0}, "--set a\nb"}, "unknown option 'a\nb'", "\x1b[31m é");
  EXPECT_EQ(Render(std::move(problems).Take()),
            "dtrun: --set a\\nb: unknown option 'a\\nb'; \\u001b[31m é\n");
}

TEST(Render, PutsTheHintBehindItsProblem) {
  EXPECT_EQ(Render({{"t:1:2", "wrong", "do right"}, {"", "no place", ""}}),
            "dtrun: t:1:2: wrong; do right\ndtrun: no place\n");
  EXPECT_EQ(Render({}), "");
}

TEST(Render, SaysHowManyMoreThereAre) {
  const std::vector<Problem> many(21, {"t:1:2", "wrong", ""});
  const std::string text = Render(many);
  EXPECT_EQ(text.size(), 20 * std::string("dtrun: t:1:2: wrong\n").size() +
                             std::string("dtrun: ... and 1 more; correct these first\n").size());
  EXPECT_TRUE(text.ends_with("dtrun: ... and 1 more; correct these first\n"));
  EXPECT_EQ(Render({many.begin(), many.end() - 1}).find("more"), std::string::npos);
}

TEST(Problems, KeepTheLinesOfAMessageThatHasSome) {
  Problems problems;
  problems.Add({DTRUN_ORIGIN_COMMAND_LINE, {1, 0}, "--set a"}, "x\ny\033");
  problems.AddLines({DTRUN_ORIGIN_COMMAND_LINE, {2, 0}, "--set b\n"}, "x\n  y\033");
  EXPECT_EQ(Render(std::move(problems).Take()),
            "dtrun: --set a: x\\ny\\u001b\ndtrun: --set b\\n: x\n  y\\u001b\n");
}

}  // namespace
}  // namespace dtrun::spec

#include "tools/dtrun/command_line/advice.h"

#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

TEST(Advice, AShellRunsWhatOnlyAShellReads) {
  EXPECT_EQ(AsWords("python3 -c \"print(1)\""), "python3 -c \"print(1)\"");
  EXPECT_EQ(AsWords("a | b"), "sh -c 'a | b'");
  EXPECT_EQ(AsWords("echo $RANK"), "sh -c 'echo $RANK'");
}

TEST(Advice, AssignmentsAreNamesAndValues) {
  EXPECT_TRUE(IsAssignment("A_1="));
  for (const char* word : {"=1", "1A=2", "./A=1", "A", "--a=1", "\xc3\xa9=1", ""})
    EXPECT_FALSE(IsAssignment(word)) << word;
}

TEST(Advice, VariablesNeedAProgramBehind) {
  EXPECT_EQ(WithVariables({"dtrun"}, {"A=1", "x", "B=2"}), "dtrun --set job.env.A=1 x B=2");
  EXPECT_EQ(WithVariables({"dtrun"}, {"A=1"}), std::nullopt);
  EXPECT_EQ(WithVariables({"dtrun"}, {"x"}), std::nullopt);
}

TEST(Advice, VerbsHaveOtherNamesElsewhere) {
  EXPECT_EQ(VerbLike("show", {"check", "list"}), "list");
  EXPECT_EQ(VerbLike("show", {"describe"}), "describe");
  EXPECT_EQ(VerbLike("show", {"check"}), std::nullopt);
}

TEST(Advice, AShortOptionIsTheOnlyLongOneThatBeginsSo) {
  EXPECT_EQ(LongFor("-t", {"--list", "--template"}), "--template");
  EXPECT_EQ(LongFor("-l", {"--list", "--long"}), std::nullopt);
  EXPECT_EQ(LongFor("-xy", {"--xylophone"}), std::nullopt);
}

}  // namespace
}  // namespace dtrun::cli

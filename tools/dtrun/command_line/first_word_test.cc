#include "tools/dtrun/command_line/first_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

using ::testing::HasSubstr;

TEST(FirstWord, LaunchersAreKnownByTheirFile) {
  for (const char* name : {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "/usr/bin/mpirun"}) {
    const auto launcher = LauncherOf({name, "-np", "2", "train"});
    ASSERT_TRUE(launcher) << name;
    EXPECT_TRUE(launcher->mpi) << name;
    EXPECT_EQ(launcher->words, 1u);
  }
  for (const char* name : {"srun", "horovodrun", "deepspeed", "torchrun", "./torchrun"}) {
    EXPECT_TRUE(LauncherOf({name})) << name;
  }
  for (const char* name : {"python3", "mpirun.py", "run", "mpi", "", "accelerate"}) {
    EXPECT_FALSE(LauncherOf({name, "train.py"})) << name;
  }
  EXPECT_FALSE(LauncherOf({"accelerate", "config"}));
  EXPECT_EQ(LauncherOf({"accelerate", "launch", "train.py"})->words, 2u);
}

TEST(FirstWord, ModulesOfPythonToo) {
  const auto run = LauncherOf({"python3", "-u", "-m", "torch.distributed.run", "train.py"});
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->torchrun && !run->old);
  EXPECT_EQ(run->words, 4u);
  EXPECT_TRUE(LauncherOf({"/usr/bin/python", "-m", "torch.distributed.launch", "train.py"})->old);
  EXPECT_FALSE(LauncherOf({"python3", "-m", "pkg.train"}));
  EXPECT_FALSE(LauncherOf({"python3", "train.py", "-m", "torch.distributed.run"}));
  EXPECT_FALSE(LauncherOf({"python3", "-m"}));
  EXPECT_EQ(LauncherOf({"python", "-W", "ignore", "-m", "horovod.runner.launch", "-np", "2"})->family,
            "horovodrun");
  EXPECT_EQ(LauncherOf({"python", "-m", "deepspeed", "train.py"})->family, "deepspeed");
  const auto accelerate =
      LauncherOf({"python", "-m", "accelerate.commands.accelerate_cli", "launch", "train.py"});
  ASSERT_TRUE(accelerate);
  EXPECT_EQ(accelerate->family, "accelerate");
  EXPECT_EQ(accelerate->words, 4u);
  EXPECT_FALSE(LauncherOf({"python", "-m", "accelerate.commands.accelerate_cli", "config"}));
}

TEST(FirstWord, WordsThatReadLikeVerbsHaveAdvice) {
  EXPECT_THAT(AdviceFor("version")->text, HasSubstr("dtrun --version"));
  EXPECT_FALSE(AdviceFor("version")->beats_programs);
  EXPECT_THAT(AdviceFor("check")->text, HasSubstr("dtrun config check"));
  EXPECT_TRUE(AdviceFor("kill")->beats_programs);
  EXPECT_FALSE(AdviceFor("train"));
  EXPECT_FALSE(AdviceFor(""));
}

TEST(FirstWord, QuotedWordsAreOneLineForAShell) {
  EXPECT_EQ(Quoted({"dtrun", "-n", "2", "a b", "it's", ""}), "dtrun -n 2 'a b' 'it'\\''s' ''");
}

TEST(FirstWord, AShellRunsWhatOnlyAShellReads) {
  EXPECT_EQ(AsWords("python3 -c \"print(1)\""), "python3 -c \"print(1)\"");
  EXPECT_EQ(AsWords("a | b"), "sh -c 'a | b'");
  EXPECT_EQ(AsWords("echo $RANK"), "sh -c 'echo $RANK'");
}

TEST(FirstWord, AssignmentsAreNamesAndValues) {
  EXPECT_TRUE(IsAssignment("A_1="));
  for (const char* word : {"=1", "1A=2", "./A=1", "A", "--a=1", "\xc3\xa9=1", ""})
    EXPECT_FALSE(IsAssignment(word)) << word;
}

TEST(FirstWord, VariablesNeedAProgramBehind) {
  EXPECT_EQ(WithVariables({"dtrun"}, {"A=1", "x", "B=2"}), "dtrun --set job.env.A=1 x B=2");
  EXPECT_EQ(WithVariables({"dtrun"}, {"A=1"}), std::nullopt);
  EXPECT_EQ(WithVariables({"dtrun"}, {"x"}), std::nullopt);
}

TEST(FirstWord, VerbsHaveOtherNamesElsewhere) {
  EXPECT_EQ(VerbLike("show", {"check", "list"}), "list");
  EXPECT_EQ(VerbLike("show", {"describe"}), "describe");
  EXPECT_EQ(VerbLike("show", {"check"}), std::nullopt);
}

}  // namespace
}  // namespace dtrun::cli

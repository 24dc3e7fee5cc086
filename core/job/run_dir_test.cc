#include "core/job/run_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/process/testing.h"

namespace dtrun::job {
namespace {

namespace fs = std::filesystem;
using process::testing::ScratchDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

const RunDir::Time kNow = std::chrono::system_clock::from_time_t(1795221015);  // 2026-11-21 00:30:15 UTC

TEST(RunDir, ExpandsJobAndTime) {
  ScratchDir scratch;
  Result<RunDir> dir = RunDir::Create(scratch / "runs/{job}/{time}", "demo", kNow);
  ASSERT_TRUE(dir) << dir.error().text;
  EXPECT_EQ(dir->path(), scratch / "runs/demo/20261121-003015");
  EXPECT_TRUE(fs::is_directory(dir->path()));
}

TEST(RunDir, HidesTheFolderOfAllRunsFromGitWhenItMakesIt) {
  ScratchDir scratch;
  ASSERT_TRUE(RunDir::Create(scratch / "runs/{job}/{time}", "demo", kNow));
  EXPECT_EQ(process::testing::ReadFile(scratch / "runs/.gitignore"), "*\n");
  fs::remove(scratch / "runs/.gitignore");
  ASSERT_TRUE(RunDir::Create(scratch / "runs/{job}/{time}", "demo", kNow));
  EXPECT_FALSE(fs::exists(scratch / "runs/.gitignore")) << "the folder was there";
  ASSERT_TRUE(RunDir::Create(scratch / "mine/{job}/{time}", "demo", kNow));
  EXPECT_FALSE(fs::exists(scratch / "mine/.gitignore")) << "the user's own";
}

TEST(RunDir, IsShownRelativeAndOnce) {
  const std::string here = fs::current_path().string();
  EXPECT_EQ(
      ShownIn("(all of it: " + here + "/runs/1/rank-0.*)\n  logs: " + here + "/runs/1", here + "/runs/1"),
      "(all of it: rank-0.*)\n  logs: runs/1");
  EXPECT_EQ(ShownIn("  logs: /far/1", "/far/1"), "  logs: /far/1");
}

TEST(RunDir, TellsWhetherItIsLive) {
  ScratchDir scratch;
  {
    const Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
    ASSERT_TRUE(dir) << dir.error().text;
    EXPECT_EQ(IsLive(dir->path()), std::optional(true));
  }
  EXPECT_EQ(IsLive(scratch / "demo"), std::optional(false));
  EXPECT_EQ(IsLive(scratch / "missing"), std::nullopt);
}

TEST(RunDir, IsRemovedOnceItsRunHasEnded) {
  ScratchDir scratch;
  fs::path run;
  {
    Result<RunDir> dir = RunDir::Create(scratch / "runs/{job}/{time}", "demo", kNow);
    ASSERT_TRUE(dir) << dir.error().text;
    run = dir->path();
    ASSERT_TRUE(dir->Write("plan.json", "{}"));
    EXPECT_THAT(RemoveRun(run).error().text, HasSubstr("live"));
  }
  fs::create_directory(run / "mine");
  EXPECT_THAT(RemoveRun(run).error().text, HasSubstr("'mine'"));
  fs::remove(run / "mine");
  fs::create_symlink(run, scratch / "link");
  EXPECT_FALSE(RemoveRun(scratch / "link"));
  for (const char* const mine :
       {"rank-0.pt", "generation-1.pt", "before-training", "generation-0/rank-0.pt"}) {
    fs::create_directories((run / mine).parent_path());
    std::ofstream(run / mine) << "weights";
    EXPECT_THAT(RemoveRun(run).error().text, HasSubstr("'" + std::string(mine) + "'"));
    fs::remove(run / mine);
  }
  std::ofstream(run / "generation-0/rank-12.out") << "a log";
  std::ofstream(run / "report.html") << "a page";
  EXPECT_TRUE(RemoveRun(run));
  EXPECT_FALSE(fs::exists(run));
  EXPECT_FALSE(fs::is_symlink(run.parent_path() / "latest"));
  fs::create_directory(run);
  EXPECT_THAT(RemoveRun(run).error().text, HasSubstr("plan.json"));
}

TEST(RunDir, NumbersTheRunsOfOneSecond) {
  ScratchDir scratch;
  const std::string pattern = scratch / "{time}";
  ASSERT_TRUE(RunDir::Create(pattern, "demo", kNow));
  EXPECT_EQ(RunDir::Create(pattern, "demo", kNow)->path().filename(), "20261121-003015-2");
  EXPECT_EQ(RunDir::Create(pattern, "demo", kNow)->path().filename(), "20261121-003015-3");
}

TEST(RunDir, LinksTheLatestRun) {
  ScratchDir scratch;
  const std::string pattern = scratch / "{time}";
  ASSERT_TRUE(RunDir::Create(pattern, "demo", kNow));
  Result<RunDir> second = RunDir::Create(pattern, "demo", kNow);
  EXPECT_EQ(second->note(), "");
  EXPECT_EQ(fs::read_symlink(scratch / "latest"), second->path().filename());
}

TEST(RunDir, LeavesAFileNamedLatestAlone) {
  ScratchDir scratch;
  std::ofstream(scratch / "latest") << "mine";
  Result<RunDir> dir = RunDir::Create(scratch / "{time}", "demo", kNow);
  ASSERT_TRUE(dir);
  EXPECT_THAT(dir->note(), HasSubstr("was not changed"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "latest"), "mine");
}

TEST(RunDir, UsesAFolderWithoutTimeAgain) {
  ScratchDir scratch;
  const std::string pattern = scratch / "{job}";
  ASSERT_TRUE(RunDir::Create(pattern, "demo", kNow));
  Result<RunDir> again = RunDir::Create(pattern, "demo", kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->path(), scratch / "demo");
  EXPECT_FALSE(fs::exists(scratch / "latest"));
}

TEST(RunDir, IsNotTheRootOfAllFolders) {
  const Result<RunDir> dir = RunDir::Create("/", "demo", kNow);
  ASSERT_FALSE(dir);
  EXPECT_EQ(
      dir.error().text,
      "cannot create the run directory '/': it is the root of all folders; set logs.dir to a folder you "
      "can write to");
}

TEST(RunDir, RefusesAFolderThatARunHasThatHasNotEnded) {
  ScratchDir scratch;
  Result<RunDir> first = RunDir::Create(scratch / "{job}", "demo", kNow);
  ASSERT_TRUE(first->Write("config.json", "first"));
  ASSERT_TRUE(first->Write("plan.json", "first"));
  const Result<RunDir> second = RunDir::Create(scratch / "{job}", "demo", kNow);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, AllOf(HasSubstr("not ended"), HasSubstr("/demo'"), HasSubstr("{time}")));
  EXPECT_EQ(process::testing::ReadFile(scratch / "demo/config.json"), "first");
  first = Error{DTRUN_INTERNAL, "ended"};
  EXPECT_TRUE(RunDir::Create(scratch / "{job}", "demo", kNow));
}

TEST(RunDir, SetsAsideWhatAnEarlierRunHasLeft) {
  ScratchDir scratch;
  for (const char* const run : {"first", "second"}) {
    Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
    ASSERT_TRUE(dir) << dir.error().text;
    EXPECT_FALSE(fs::exists(dir->path() / "rank-1.out")) << run;
    EXPECT_FALSE(fs::exists(dir->path() / "generation-1")) << run;
    fs::create_directory(dir->path() / "generation-1");
    for (const char* const name : {"config.json", "plan.json", "stacks.txt", "rank-1.out", "mine.txt"})
      std::ofstream(dir->path() / name) << run;
  }
  const Result<RunDir> third = RunDir::Create(scratch / "{job}", "demo", kNow);
  EXPECT_THAT(third->note(), HasSubstr("'before-20261121-003015-2'"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "demo/before-20261121-003015/rank-1.out"), "first");
  EXPECT_EQ(process::testing::ReadFile(scratch / "demo/before-20261121-003015-2/stacks.txt"), "second");
  EXPECT_TRUE(fs::exists(scratch / "demo/before-20261121-003015-2/generation-1"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "demo/mine.txt"), "second") << "no file of a run";
}

TEST(RunDir, IsNotTheFolderOfAModelThatHasAConfigOfItsOwn) {
  ScratchDir scratch;
  std::ofstream(fs::path(scratch / "config.json")) << "precious";
  const Result<RunDir> run = RunDir::Create(scratch.path().string(), "demo", kNow);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().text,
              AllOf(HasSubstr("config.json was not written by dtrun"), HasSubstr("logs.dir")));
  EXPECT_EQ(process::testing::ReadFile(scratch / "config.json"), "precious");
}

TEST(RunDir, ExplainsAPlaceWhereNoFolderCanBe) {
  ScratchDir scratch;
  std::ofstream(scratch / "file") << "";  // a file in its place stops root as well
  for (const std::string& pattern :
       {scratch / "file/{time}", scratch / "file", std::string("/proc/{time}")}) {
    Result<RunDir> dir = RunDir::Create(pattern, "demo", kNow);
    ASSERT_FALSE(dir) << pattern;
    EXPECT_THAT(dir.error().text, AllOf(HasSubstr("run directory '"), HasSubstr("logs.dir"))) << pattern;
  }
}

TEST(RunDir, WritesAndReplacesFiles) {
  ScratchDir scratch;
  Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
  ASSERT_TRUE(dir->Write("plan.json", "a longer text"));
  ASSERT_TRUE(dir->Write("plan.json", "short"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "demo/plan.json"), "short");
}

TEST(RunDir, IsPrivateUnlessAskedOtherwise) {
  ScratchDir scratch;
  const mode_t before = ::umask(0);
  const auto mode_of = [](const fs::path& path) {
    return static_cast<unsigned>(fs::status(path).permissions());
  };
  Result<RunDir> own = RunDir::Create(scratch / "own", "demo", kNow);
  Result<RunDir> shared = RunDir::Create(scratch / "shared", "demo", kNow, 0750);
  ASSERT_TRUE(own->Write("plan.json", "x"));
  ASSERT_TRUE(shared->Write("plan.json", "x"));
  ::umask(before);
  EXPECT_EQ(mode_of(own->path()), 0700u);
  EXPECT_EQ(mode_of(own->path() / "plan.json"), 0600u);
  EXPECT_EQ(mode_of(shared->path()), 0750u);
  EXPECT_EQ(mode_of(shared->path() / "plan.json"), 0640u);
}

TEST(RunDir, IsNotWrittenThroughALink) {
  ScratchDir scratch;
  std::ofstream(scratch / "mine") << "precious";
  Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
  fs::create_symlink(scratch / "mine", dir->path() / "verdict.json");
  ASSERT_TRUE(dir->Write("verdict.json", "x"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "mine"), "precious");
  EXPECT_EQ(process::testing::ReadFile(dir->path() / "verdict.json"), "x");
}

TEST(RunDir, IsNotFoundThroughTheLinkOfAStranger) {
  ScratchDir scratch;
  fs::create_directory(scratch / "target");
  fs::create_directory(scratch / "open");
  fs::permissions(scratch / "open", fs::perms::all | fs::perms::sticky_bit);
  const fs::path link = scratch / "open/runs";
  fs::create_directory_symlink(scratch / "target", link);
  if (::lchown(link.c_str(), 4242, 4242) != 0) GTEST_SKIP() << "needs root";
  for (const char* place : {"open/runs", "open/runs/{time}", "open/runs/a/b"}) {
    const Result<RunDir> dir = RunDir::Create(scratch / place, "demo", kNow);
    ASSERT_FALSE(dir) << place;
    EXPECT_THAT(dir.error().text,
                AllOf(HasSubstr("/open/runs' is a symbolic link of user 4242"), HasSubstr("remove it")));
  }
  EXPECT_TRUE(fs::is_empty(scratch / "target"));
}

TEST(RunDir, IsWhatWasOpenedWhateverBecomesOfThePath) {
  ScratchDir scratch;
  fs::create_directory(scratch / "target");
  const Result<RunDir> dir = RunDir::Create(scratch / "run", "demo", kNow);
  ASSERT_TRUE(dir) << dir.error().text;
  fs::rename(scratch / "run", scratch / "moved");
  fs::create_directory_symlink(scratch / "target", scratch / "run");
  ASSERT_TRUE(dir->Write("verdict.json", "x"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "moved/verdict.json"), "x");
  EXPECT_TRUE(fs::is_empty(scratch / "target"));
}

TEST(RunDir, SaysWhereItIsNow) {
  ScratchDir scratch;
  const Result<RunDir> dir = RunDir::Create(scratch / "run", "demo", kNow);
  ASSERT_TRUE(dir) << dir.error().text;
  EXPECT_EQ(dir->Moved(), "");
  fs::rename(scratch / "run", scratch / "elsewhere");
  EXPECT_THAT(dir->Moved(), AllOf(HasSubstr("/run' was moved"), HasSubstr("/elsewhere'")));
  fs::remove_all(scratch / "elsewhere");
  EXPECT_THAT(dir->Moved(), HasSubstr("/run' was removed while the job ran"));
}

TEST(RunDir, WarnsWhereOthersMayReplaceIt) {
  ScratchDir scratch;
  fs::create_directory(scratch / "open");
  fs::permissions(scratch / "open", fs::perms::all);
  EXPECT_THAT(RunDir::Create(scratch / "open/{time}", "demo", kNow)->note(),
              HasSubstr("every user can write to"));
}

TEST(RunDir, TellsItsPathInAFile) {
  ScratchDir scratch;
  const Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
  ASSERT_TRUE(dir->TellPath({}));
  std::ofstream(scratch / "run")
      << "of an earlier run, which was longer than this one will be in its own folder";
  ASSERT_TRUE(dir->TellPath(scratch / "run"));
  EXPECT_EQ(process::testing::ReadFile(scratch / "run"), dir->path().string());
  EXPECT_THAT(dir->TellPath(scratch / "missing/run").error().text, HasSubstr("missing'"));
}

TEST(RunDir, NamesTheFileThatCannotBeWritten) {
  ScratchDir scratch;
  Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
  EXPECT_THAT(dir->Write("missing/plan.json", "x").error().text, HasSubstr("missing/plan.json"));
}

}  // namespace
}  // namespace dtrun::job

#include "core/agent/run_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/agent/testing.h"

namespace dtrun::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ScratchDir;

const RunDir::Time kNow = std::chrono::system_clock::from_time_t(1795221015);  // 2026-11-21 00:30:15 UTC

TEST(RunDir, ExpandsJobAndTime) {
  ScratchDir scratch;
  Result<RunDir> dir = RunDir::Create(scratch / "runs/{job}/{time}", "demo", kNow);
  ASSERT_TRUE(dir) << dir.error().text;
  EXPECT_EQ(dir->path(), scratch / "runs/demo/20261121-003015");
  EXPECT_TRUE(fs::is_directory(dir->path()));
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
  EXPECT_THAT(dir->note(), HasSubstr("left alone"));
  EXPECT_EQ(testing::ReadFile(scratch / "latest"), "mine");
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

TEST(RunDir, ExplainsAPlaceWhereNoFolderCanBe) {
  ScratchDir scratch;
  std::ofstream(scratch / "file") << "";  // a file in the way stops root as well
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
  EXPECT_EQ(testing::ReadFile(scratch / "demo/plan.json"), "short");
}

TEST(RunDir, NamesTheFileThatCannotBeWritten) {
  ScratchDir scratch;
  Result<RunDir> dir = RunDir::Create(scratch / "{job}", "demo", kNow);
  EXPECT_THAT(dir->Write("missing/plan.json", "x").error().text, HasSubstr("missing/plan.json"));
  fs::create_symlink("/dev/full", dir->path() / "verdict.json");
  EXPECT_THAT(dir->Write("verdict.json", "x").error().text, HasSubstr("no space left"));
}

}  // namespace
}  // namespace dtrun::agent

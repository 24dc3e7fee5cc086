#include "core/job/run_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/process/testing.h"

namespace dtrun::job {
namespace {

namespace fs = std::filesystem;
using process::testing::ScratchDir;
using std::chrono::milliseconds;

const RegisteredRun::Time kBegan =
    std::chrono::system_clock::from_time_t(1795221015);  // 2026-11-21 00:30:15 UTC

class RunRegistry : public ::testing::Test {
 protected:
  RunRegistry() { ::setenv("XDG_STATE_HOME", scratch_.path().c_str(), 1); }
  ~RunRegistry() override { ::unsetenv("XDG_STATE_HOME"); }

  fs::path MakeRun(const std::string& name) const {
    fs::create_directories(scratch_ / name);
    return scratch_ / name;
  }
  fs::path Links() const { return scratch_ / "dtrun/jobs"; }
  std::size_t CountLinks() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(Links()), fs::directory_iterator()));
  }

  ScratchDir scratch_;
};

TEST_F(RunRegistry, ListsTheNewestFirst) {
  EXPECT_TRUE(RegisteredRuns().empty());
  Register(MakeRun("a"), "older", kBegan);
  Register(MakeRun("b"), "a-name-with-dashes", kBegan + milliseconds(42));
  const std::vector<RegisteredRun> runs = RegisteredRuns();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].job, "a-name-with-dashes");
  EXPECT_EQ(runs[0].folder, scratch_ / "b");
  EXPECT_EQ(runs[0].began, kBegan + milliseconds(42));
  EXPECT_EQ(runs[0].pid, ::getpid());
  EXPECT_EQ(fs::read_symlink(runs[0].link), runs[0].folder);
  EXPECT_EQ(runs[1].job, "older");
  struct stat info {};
  ASSERT_EQ(::stat(Links().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(RunRegistry, NamesAFolderThatIsUsedAgainOnce) {
  Register(MakeRun("a"), "first", kBegan);
  Register(MakeRun("a"), "second", kBegan + milliseconds(1));
  const std::vector<RegisteredRun> runs = RegisteredRuns();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].job, "second");
}

TEST_F(RunRegistry, ForgetsRunsThatAreGone) {
  Register(MakeRun("a"), "gone", kBegan);
  Register(MakeRun("b"), "here", kBegan);
  fs::remove(scratch_ / "a");
  EXPECT_EQ(RegisteredRuns().size(), 1U);
  EXPECT_EQ(CountLinks(), 1U);
}

TEST_F(RunRegistry, KeepsTheNewestThousand) {
  const fs::path run = MakeRun("a");
  for (int i = 0; i < static_cast<int>(kMostRegistered) + 3; ++i)
    Register(run, "job", kBegan + milliseconds(i));
  EXPECT_EQ(CountLinks(), kMostRegistered);
  EXPECT_EQ(RegisteredRuns().front().began, kBegan + milliseconds(static_cast<int>(kMostRegistered) + 2));
}

TEST_F(RunRegistry, IsNotForOthersAndNeedsNoFolder) {
  Register(MakeRun("a"), "job", kBegan);
  fs::permissions(Links(), fs::perms::all);
  EXPECT_TRUE(RegisteredRuns().empty()) << "others may have made the links";
  fs::remove_all(Links());
  std::ofstream(Links()) << "a file";
  Register(MakeRun("a"), "job", kBegan);
  EXPECT_TRUE(RegisteredRuns().empty());
}

TEST(RunLinkName, IsOfThisHostAndWhole) {
  const auto run = ReadLinkName("20261121-003015.042-my-job-17@node1", "node1");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->job, "my-job");
  EXPECT_EQ(run->pid, 17);
  EXPECT_EQ(run->began, kBegan + milliseconds(42));
  for (const char* other :
       {"20261121-003015.042-job-17@node2", "20261121-003015.042-job@node1", "20261121-003015.042-17@node1",
        "20261121-003015.042-job-x@node1", "20261121-003015", "2026112x-003015.042-job-17@node1", ""}) {
    EXPECT_FALSE(ReadLinkName(other, "node1")) << other;
  }
}

}  // namespace
}  // namespace dtrun::job

#include "core/process/cgroup.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "core/process/process.h"
#include "core/process/spawn.h"
#include "core/process/testing.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Copies of /proc files from other systems.
class OwnCgroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& group, const std::string& mounts) {
    fs::create_directories(scratch_.path() / "proc/self");
    std::ofstream(scratch_.path() / "proc/self/cgroup") << group;
    std::ofstream(scratch_.path() / "proc/self/mountinfo") << mounts;
  }
  testing::ScratchDir scratch_;
};

TEST_F(OwnCgroupTest, IsBelowTheMount) {
  Write("0::/user.slice/a.scope\n", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(OwnCgroup(scratch_.path()).value(), "/sys/fs/cgroup/user.slice/a.scope");
}

TEST_F(OwnCgroupTest, IsFoundWhereOnlyAPartIsMounted) {
  Write("1:cpu:/x\n0::/docker/abc/inner\n",
        "29 24 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(OwnCgroup(scratch_.path()).value(), "/sys/fs/cgroup/inner");
}

TEST_F(OwnCgroupTest, IsWhereDtrunWasBeforeItMovedAside) {
  Write("0::/a.scope/dtrun-0123456789ab-launcher\n", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(OwnCgroup(scratch_.path()).value(), "/cg/a.scope");
}

TEST_F(OwnCgroupTest, IsAnErrorWithoutVersion2) {
  Write("4:memory:/\n", "29 24 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_FALSE(OwnCgroup(scratch_.path()));
  Write("0::/docker/abc\n", "30 24 0:26 /docker/other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_FALSE(OwnCgroup(scratch_.path()));
}

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BecomeSubreaper();
    const Result<fs::path> parent = OwnCgroup();
    if (!parent) GTEST_SKIP() << parent.error().text;
    parent_ = *parent;
    auto made = Cgroup::Make(parent_, name_, 0);
    if (!made) GTEST_SKIP() << made.error().text;
    group_ = *std::move(made);
  }
  void TearDown() override {
    KillDescendants(std::chrono::seconds(30));
    group_.reset();
    EXPECT_TRUE(parent_.empty() || !fs::exists(parent_ / name_));
  }

  Child Start(const std::string& script) const {
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script};
    request.env = {"PATH=/usr/bin:/bin"};
    request.cwd = scratch_.path().string();
    request.cgroup = group_->descriptor();
    request.cgroup_required = true;
    return std::move(Spawn(request)).value();
  }

  static int Await(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }

  testing::ScratchDir scratch_;
  const std::string name_ = fmt::format("dtrun-{:012x}", ::getpid());
  fs::path parent_;
  std::unique_ptr<Cgroup> group_;
};

TEST_F(CgroupTest, HoldsWhatIsStartedInIt) {
  const Child child = Start("cat /proc/self/cgroup > group; exit 4");
  EXPECT_EQ(WEXITSTATUS(Await(child.pid)), 4);
  EXPECT_THAT(testing::ReadFile(scratch_ / "group"), HasSubstr("/" + name_ + "\n"));
}

TEST_F(CgroupTest, IsKilledWithWhatKeepsForking) {
  const Child child = Start("f() { : > up; (f) & exit; }; f & f & f & sleep 1000");
  ASSERT_TRUE(testing::Eventually([this] { return fs::exists(scratch_ / "up"); }));
  group_->Kill();
  EXPECT_EQ(WTERMSIG(Await(child.pid)), SIGKILL);
  EXPECT_TRUE(testing::Eventually(
      [this] { return testing::ReadFile((parent_ / name_ / "cgroup.procs").string()).empty(); }));
}

TEST_F(CgroupTest, GoesWithItsProcessesAndTheGroupsThatTheyMade) {
  const Child child = Start("mkdir -p " + (parent_ / name_ / "a/b").string() + "; : > up; exec sleep 1000");
  ASSERT_TRUE(testing::Eventually([this] { return fs::exists(scratch_ / "up"); }));
  group_.reset();
  EXPECT_FALSE(fs::exists(parent_ / name_));
  EXPECT_EQ(WTERMSIG(Await(child.pid)), SIGKILL);
}

TEST_F(CgroupTest, IsStaleOnlyWithoutItsLock) {
  RemoveStaleCgroups(parent_);
  EXPECT_TRUE(fs::exists(parent_ / name_));
  const std::string other =
      fmt::format("dtrun-{:012x}", (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(::getpid()));
  fs::create_directory(parent_ / other);
  RemoveStaleCgroups(parent_);
  EXPECT_FALSE(fs::exists(parent_ / other));
}

TEST_F(CgroupTest, ALimitThatCannotBeKeptSaysWhyAndWhatToDo) {
  if (testing::ReadFile((parent_ / "cgroup.controllers").string()).find("memory") != std::string::npos)
    GTEST_SKIP() << "memory can be limited here";
  const auto made = Cgroup::Make(parent_, name_ + "-limited", 1 << 30);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text, HasSubstr("the memory controller of cgroup v2 is not available here"));
  EXPECT_THAT(made.error().text, HasSubstr("systemd-run"));
  EXPECT_FALSE(fs::exists(parent_ / (name_ + "-limited")));
}

}  // namespace
}  // namespace dtrun::process

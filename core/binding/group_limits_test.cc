#include "core/binding/group_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace dtrun::binding {
namespace {

namespace fs = std::filesystem;

class GroupLimitsTest : public ::testing::Test {
 protected:
  ~GroupLimitsTest() override { fs::remove_all(root_); }
  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }

  fs::path root_ = fs::path(::testing::TempDir()) / ("group-limits-" + std::to_string(::getpid()));
};

TEST_F(GroupLimitsTest, AreTheLeastOfAGroupAndThoseAroundIt) {
  Write("proc/self/cgroup", "0::/pods/one");
  Write("proc/self/mountinfo", "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  Write("sys/fs/cgroup/pods/cpu.max", "150000 100000");
  Write("sys/fs/cgroup/pods/one/cpu.max", "400000 100000");
  Write("sys/fs/cgroup/pods/one/memory.max", "max");
  Write("sys/fs/cgroup/pods/memory.max", "1073741824");
  Write("sys/fs/cgroup/pods/one/pids.max", "100");
  Write("sys/fs/cgroup/pods/cpuset.cpus.effective", "0-7");
  Write("sys/fs/cgroup/pods/one/cpuset.cpus.effective", "0-1,4");
  const GroupLimits limits = ReadGroupLimits(root_);
  EXPECT_EQ(limits.processors, 1.5);
  EXPECT_EQ(limits.whole_processors(), 1);
  EXPECT_EQ(limits.memory, 1073741824u);
  EXPECT_EQ(limits.tasks, 100u);
  EXPECT_EQ(limits.cpuset, "0-1,4");
}

TEST_F(GroupLimitsTest, OfVersion1InAContainerThatSeesItsOutsidePath) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/");
  Write("proc/self/mountinfo",
        "31 20 0:2 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "32 20 0:3 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  const GroupLimits limits = ReadGroupLimits(root_);
  EXPECT_EQ(limits.processors, 0.5);
  EXPECT_EQ(limits.whole_processors(), 1);
  EXPECT_FALSE(limits.memory.has_value());
}

TEST_F(GroupLimitsTest, AreNoneWithoutQuotas) {
  EXPECT_EQ(ReadGroupLimits(root_).whole_processors(), 0);
  Write("proc/self/cgroup", "1:cpu:/\n0::/");
  Write("proc/self/mountinfo",
        "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n31 20 0:2 / /cpu rw - cgroup cgroup rw,cpu");
  Write("sys/fs/cgroup/cpu.max", "max 100000");
  Write("cpu/cpu.cfs_quota_us", "-1");
  Write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(ReadGroupLimits(root_).processors.has_value());
}

}  // namespace
}  // namespace dtrun::binding

#include "core/process/memory_evidence.h"

#include <gtest/gtest.h>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

class MemoryEvidenceTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const auto file = root_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  testing::ScratchDir root_;
};

TEST_F(MemoryEvidenceTest, ReadsTheGroupOfVersionTwo) {
  Write("proc/self/cgroup", "0::/jobs/7\n");
  Write("proc/self/mountinfo", "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("proc/vmstat", "oom_kill 5\n");
  Write("sys/fs/cgroup/jobs/7/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  const MemoryEvidence evidence(root_.path());
  EXPECT_FALSE(evidence.Rose());
  Write("proc/vmstat", "oom_kill 6\n");  // of another group
  EXPECT_FALSE(evidence.Rose());
  Write("sys/fs/cgroup/jobs/7/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n");
  EXPECT_TRUE(evidence.Rose());
}

TEST_F(MemoryEvidenceTest, ReadsTheGroupOfVersionOneInAContainer) {
  Write("proc/self/cgroup", "5:cpu:/x\n4:memory:/host/path/not/mounted\n0::/\n");
  Write("proc/self/mountinfo",
        "31 20 0:2 /host/path/not/mounted /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  const MemoryEvidence evidence(root_.path());
  Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_TRUE(evidence.Rose());
}

TEST_F(MemoryEvidenceTest, FallsBackToTheWholeSystemAndKnowsNothingWithoutIt) {
  const MemoryEvidence nothing(root_.path());
  EXPECT_FALSE(nothing.Rose());
  Write("proc/vmstat", "nr_free_pages 12\noom_kill 5\n");
  const MemoryEvidence evidence(root_.path());
  Write("proc/vmstat", "nr_free_pages 12\noom_kill 6\n");
  EXPECT_TRUE(evidence.Rose());
}

}  // namespace
}  // namespace dtrun::process

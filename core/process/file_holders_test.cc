#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/fd.h"
#include "core/process/segments.h"
#include "core/process/testing.h"

namespace dtrun::process {
namespace {

TEST(FileHolders, SeesWhoHasAFileOpen) {
  const testing::ScratchDir scratch("/dev/shm");
  UniqueFd first(::open((scratch / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat info {};
  ASSERT_EQ(::fstat(first.get(), &info), 0);
  EXPECT_TRUE(Holds(::getpid(), info));
  EXPECT_FALSE(Maps(::getpid(), info));
  EXPECT_TRUE(IsOnlyHolder(first.get()));
  const UniqueFd second(::open((scratch / "file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(IsOnlyHolder(second.get()));
  first.Reset();
  EXPECT_TRUE(IsOnlyHolder(second.get()));
}

TEST(FileHolders, LeavesOutThoseExcepted) {
  const std::vector<pid_t> all = ProcessesOfThisUser({});
  for (const pid_t pid : all) EXPECT_NE(pid, ::getpid());
  const pid_t parent = ::getppid();
  for (const pid_t pid : ProcessesOfThisUser({parent})) EXPECT_NE(pid, parent);
}

}  // namespace
}  // namespace dtrun::process

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/stacks/unwinder.h"

namespace dtrun::stacks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Attached, KnowsAProcessForAsLongAsAToolMayHoldIt) {
  Attached attached;
  {
    const Attached::Scope one(attached, 7), again(attached, 7);
    EXPECT_TRUE(attached.Has(7));
    EXPECT_FALSE(attached.Has(8));
    EXPECT_THAT(attached.tools(), IsEmpty());
  }
  EXPECT_FALSE(attached.Has(7));
}

TEST(Attached, KillsTheGroupOfATool) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t tool = ::fork();
  if (tool == 0) {
    ::setpgid(0, 0);
    if (::fork() == 0) [[maybe_unused]]
      const ssize_t told = ::write(ends[1], "x", 1);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char up = 0;
  ASSERT_EQ(::read(ends[0], &up, 1), 1);
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, tool, 0)));
  Attached attached;
  Attached::Scope scope(attached, 7);
  scope.Runs(tool, handle.get());
  EXPECT_THAT(attached.tools(), ElementsAre(tool));
  attached.KillTools();
  EXPECT_EQ(::read(ends[0], &up, 1), 0) << "the child of the tool has ended, too";
  scope.Gone();
  EXPECT_THAT(attached.tools(), IsEmpty());
  ::close(ends[0]);
  ::waitpid(tool, nullptr, 0);
}

}  // namespace
}  // namespace dtrun::stacks

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "core/process/process.h"
#include "core/process/testing.h"

namespace dtrun::process {
namespace {

constexpr int kOrphans = 100;

std::size_t Zombies() {
  const std::vector<Process> below = Descendants(::getpid());
  return static_cast<std::size_t>(std::ranges::count(below, 'Z', &Process::state));
}

// Every orphan ends as a child of the process that adopts it.
void MakeOrphans() {
  for (int i = 0; i < kOrphans; ++i) {
    const pid_t parent = ::fork();
    if (parent == 0) {
      ::fork();
      ::_exit(0);
    }
    ::waitpid(parent, nullptr, 0);
  }
}

// Runs `body` in a single-threaded subreaper, as the agent and the guard are at start.
int InSubreaper(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    BecomeSubreaper();
    sigset_t ended;
    ::sigemptyset(&ended);
    ::sigaddset(&ended, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &ended, nullptr);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ReapWhile, ReturnsWhatTheWorkReturns) {
  EXPECT_EQ(InSubreaper([] { return ReapWhile([] { return 7; }); }), 7);
}

TEST(ReapWhile, ReapsOrphansWhileTheWorkGoesOn) {
  EXPECT_EQ(InSubreaper([] {
              return ReapWhile([] {
                MakeOrphans();
                return testing::Eventually([] { return Descendants(::getpid()).empty(); }) ? 0 : 1;
              });
            }),
            0);
}

TEST(ReapWhile, LeavesTheStatusOfChildrenThatTheWorkHasStarted) {
  EXPECT_EQ(InSubreaper([] {
              return ReapWhile([] {
                const pid_t child = ::fork();
                if (child == 0) ::_exit(9);
                if (!testing::Eventually([] { return Zombies() == 1; })) return 1;
                MakeOrphans();  // makes the reaper run again
                if (!testing::Eventually([] { return Descendants(::getpid()).size() == 1; })) return 2;
                int status = 0;
                return ::waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9 ? 0 : 3;
              });
            }),
            0);
}

TEST(ReapOthers, ReapsAllButTheKeptOne) {
  EXPECT_EQ(InSubreaper([] {
              const pid_t kept = ::fork();
              if (kept == 0) ::raise(SIGSTOP);
              MakeOrphans();
              const bool reaped = testing::Eventually([&] {
                ReapOthers({kept});
                return Descendants(::getpid()).size() == 1;
              });
              ::kill(kept, SIGKILL);
              if (!testing::Eventually([] { return Zombies() == 1; })) return 2;
              ReapOthers({kept});
              return reaped && ::waitpid(kept, nullptr, WNOHANG) == kept ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace dtrun::process

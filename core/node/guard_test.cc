#include "core/node/guard.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "core/job/testing_run.h"
#include "core/process/testing.h"

namespace dtrun::node {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A guard in a child of the test; stderr and the facts go to files.
class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override { process::BecomeSubreaper(); }
  void TearDown() override {
    // A test that ended early leaves its job, which would keep our output open.
    if (guard_ > 0 && HasFatalFailure()) {
      ::kill(guard_, SIGKILL);
      ::waitpid(guard_, nullptr, 0);
    }
    EXPECT_TRUE(process::testing::Eventually([&] { return process::testing::Marked(mark_).empty(); }));
    if (const std::string dir = process::testing::ReadFile(scratch_ / "dir"); !dir.empty()) {
      EXPECT_TRUE(process::testing::Eventually([&] { return !fs::exists(dir); })) << dir;
    }
    // An agent that outlived its guard is now our child.
    EXPECT_TRUE(process::testing::Eventually([] { return ::waitpid(-1, nullptr, WNOHANG) < 0; }));
  }

  void Begin(
      const std::function<int(process::Lifeline&)>& work, const std::function<void()>& prepare = [] {}) {
    std::fflush(nullptr);  // otherwise the child would write it again
    guard_ = ::fork();
    ASSERT_GE(guard_, 0);
    if (guard_ != 0) return;
    ::setpgid(0, 0);
    const int err = ::open((scratch_ / "stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(err, STDERR_FILENO);
    prepare();
    ::_exit(Guarded([&](process::Lifeline& lifeline) {
      std::ofstream(scratch_ / "dir") << lifeline.runtime_dir().string();
      std::ofstream(scratch_ / "agent.part") << ::getpid();
      fs::rename(scratch_ / "agent.part", scratch_ / "agent");
      return work(lifeline);
    }));
  }

  // Ranks like those of a real job.
  std::function<int(process::Lifeline&)> Job(const std::vector<std::string>& scripts) {
    return [this, scripts](process::Lifeline& lifeline) {
      lifeline.LastWords("  logs: somewhere\n");
      return job::testing::RunHere(job::testing::ShellPlan(scripts, mark_, scratch_.path()), lifeline);
    };
  }

  // Two ranks that resist ending, with grandchildren in their own sessions: 4 processes.
  void BeginStubbornJob() {
    const std::string stubborn =
        "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; : > $DIR/up.'$DTRUN_RANK'; exec sleep 1000' &"
        " exec sleep 1000";
    Begin(Job({stubborn, stubborn}));
    ASSERT_TRUE(process::testing::Eventually([&] {
      return fs::exists(scratch_ / "up.0") && fs::exists(scratch_ / "up.1") &&
             process::testing::Marked(mark_).size() == 4;
    }));
  }

  pid_t Agent() {
    EXPECT_TRUE(process::testing::Eventually([&] { return fs::exists(scratch_ / "agent"); }));
    return static_cast<pid_t>(std::stol(process::testing::ReadFile(scratch_ / "agent")));
  }

  int Await() {
    int status = 0;
    ::waitpid(guard_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  process::testing::ScratchDir scratch_;
  const std::string mark_ = process::testing::NewMark();
  pid_t guard_ = -1;
};

TEST_F(GuardTest, ReturnsTheCodeOfTheWork) {
  Begin([](process::Lifeline&) { return 42; });
  EXPECT_EQ(Await(), 42);
  EXPECT_EQ(process::testing::ReadFile(scratch_ / "stderr"), "");
}

TEST_F(GuardTest, GivesAPrivateFolderThatTakesASocketPath) {
  Begin([](process::Lifeline& lifeline) {
    struct stat info {};
    if (::stat(lifeline.runtime_dir().c_str(), &info) != 0) return 1;
    std::ofstream(lifeline.runtime_dir() / "store") << "x";
    return (info.st_mode & 0777) == 0700 && lifeline.runtime_dir().string().size() < 100 ? 0 : 2;
  });
  EXPECT_EQ(Await(), 0);
}

TEST_F(GuardTest, FallsBackToTmpWhenTheUsersFolderIsUnusable) {
  Begin([](process::Lifeline& lifeline) { return lifeline.runtime_dir().parent_path() == "/tmp" ? 0 : 1; },
        [] { ::setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1); });
  EXPECT_EQ(Await(), 0);
}

TEST_F(GuardTest, EndsTheJobWhenTheAgentIsKilled) {
  BeginStubbornJob();
  ::kill(Agent(), SIGKILL);
  EXPECT_EQ(Await(), 128 + SIGKILL);
  EXPECT_THAT(process::testing::Marked(mark_), IsEmpty());  // nothing is left when it returns
  EXPECT_THAT(process::testing::ReadFile(scratch_ / "stderr"),
              AllOf(HasSubstr("agent (pid " + std::to_string(Agent()) + ") was killed by signal 9 (SIGKILL)"),
                    HasSubstr("all processes of the job were ended"), HasSubstr("logs: somewhere")));
}

TEST_F(GuardTest, EndsTheJobWhenTheGuardIsKilled) {
  BeginStubbornJob();
  ::kill(guard_, SIGKILL);
  EXPECT_EQ(Await(), -SIGKILL);
}  // TearDown waits until nothing is left

TEST_F(GuardTest, EndsTheJobWhenItsWholeProcessGroupIsKilled) {
  BeginStubbornJob();
  ::kill(-guard_, SIGKILL);
  EXPECT_EQ(Await(), -SIGKILL);
}

TEST_F(GuardTest, EndsTheJobWhenTheGuardIsKilledWhileTheAgentIsStopped) {
  BeginStubbornJob();
  ::kill(Agent(), SIGSTOP);
  ::kill(guard_, SIGKILL);
  EXPECT_EQ(Await(), -SIGKILL);
}

TEST_F(GuardTest, EndsTheJobWhenTheAgentIsKilledWhileTheGuardIsStopped) {
  BeginStubbornJob();
  ::kill(guard_, SIGSTOP);
  ::kill(Agent(), SIGKILL);  // which wakes the guard
  EXPECT_EQ(Await(), 128 + SIGKILL);
  EXPECT_THAT(process::testing::Marked(mark_), IsEmpty());
}

TEST_F(GuardTest, LeavesNoRankWhenBothAreKilledAtOnce) {
  Begin(Job({"exec sleep 1000", "exec sleep 1000"}));
  ASSERT_TRUE(process::testing::Eventually([&] { return process::testing::Marked(mark_).size() == 2; }));
  ::kill(guard_, SIGSTOP);  // to keep it from acting in between
  ::kill(Agent(), SIGKILL);
  ::kill(guard_, SIGKILL);
  EXPECT_THAT(Await(), AnyOf(-SIGKILL, 128 + SIGKILL));  // it may have been quick
  EXPECT_TRUE(process::testing::Eventually([&] { return process::testing::Marked(mark_).empty(); }));
  fs::remove_all(process::testing::ReadFile(scratch_ / "dir"));  // both dtrun processes are dead
}

TEST_F(GuardTest, RelaysSigterm) {
  Begin(Job({": > $DIR/up.0; exec sleep 1000"}));
  ASSERT_TRUE(process::testing::Eventually([&] { return fs::exists(scratch_ / "up.0"); }));
  ::kill(guard_, SIGTERM);
  EXPECT_EQ(Await(), 128 + SIGTERM);
}

TEST_F(GuardTest, CountsAnInterruptOnceThatReachesBoth) {
  Begin(Job({"trap 'exit 5' INT; : > $DIR/up.0; while :; do sleep 0.01; done"}));
  ASSERT_TRUE(process::testing::Eventually([&] { return fs::exists(scratch_ / "up.0"); }));
  ::kill(guard_, SIGINT);
  ::kill(Agent(), SIGINT);
  EXPECT_EQ(Await(), 128 + SIGINT);
}

TEST_F(GuardTest, KeepsIgnoringWhatWasIgnored) {
  Begin(Job({": > $DIR/up.0; exec sleep 1000"}), [] { ::signal(SIGHUP, SIG_IGN); });
  ASSERT_TRUE(process::testing::Eventually([&] { return fs::exists(scratch_ / "up.0"); }));
  ::kill(guard_, SIGHUP);
  ::kill(guard_, SIGTERM);
  EXPECT_EQ(Await(), 128 + SIGTERM);
}

TEST_F(GuardTest, StopsOnCtrlZAndContinues) {
  Begin(Job({": > $DIR/up.0; exec sleep 1000"}));
  std::vector<pid_t> ranks;
  // While it becomes `sleep` its environment is empty.
  ASSERT_TRUE(process::testing::Eventually([&] {
    ranks = process::testing::Marked(mark_);
    return fs::exists(scratch_ / "up.0") && ranks.size() == 1;
  }));
  ::kill(guard_, SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(guard_, &status, WUNTRACED), guard_);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(process::testing::Eventually([&] { return process::ReadProcess(ranks[0])->state == 'T'; }));
  ::kill(guard_, SIGCONT);
  EXPECT_TRUE(process::testing::Eventually([&] { return process::ReadProcess(ranks[0])->state == 'S'; }));
  ::kill(guard_, SIGTERM);
  EXPECT_EQ(Await(), 128 + SIGTERM);
}

TEST_F(GuardTest, LetsAnAgentGoOnThatIsStoppedAlone) {
  Begin(Job({"until [ -e $DIR/go ]; do sleep 0.01; done"}));
  ::kill(Agent(), SIGSTOP);
  EXPECT_TRUE(process::testing::Eventually([&] {
    return process::testing::ReadFile(scratch_ / "stderr").find("was stopped by SIGSTOP") !=
           std::string::npos;
  }));
  std::ofstream(scratch_ / "go").close();
  EXPECT_EQ(Await(), 0);
}

TEST_F(GuardTest, EndsWithTheAgentAlsoWhenItIsStopped) {
  Begin(Job({"until [ -e $DIR/go ]; do sleep 0.01; done; exit 3"}));
  Agent();
  ::kill(guard_, SIGSTOP);
  std::ofstream(scratch_ / "go").close();
  EXPECT_EQ(Await(), 3);
}

TEST_F(GuardTest, WritesTheVerdictOfAKilledAgent) {
  Begin([this](process::Lifeline& lifeline) {
    const UniqueFd folder(::open(scratch_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    lifeline.RecordIn(folder.get(), "/nonexistent/moved", 0700, "job");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(Await(), 128 + SIGKILL);
  EXPECT_THAT(process::testing::ReadFile(scratch_ / "verdict.json"),
              AllOf(HasSubstr("\"exit_class\": \"launcher\""), HasSubstr("\"exit_code\": 137")));
}

TEST_F(GuardTest, ExplainsThatNoThreadCanBeStarted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space";
#endif
  Begin([](process::Lifeline&) { return 0; },
        [] {
          std::uint64_t pages = 0;
          std::ifstream("/proc/self/statm") >> pages;
          const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (2U << 20);
          const rlimit limit{most, most};  // a thread's stack is larger
          ::setrlimit(RLIMIT_AS, &limit);
          // No stack left by a thread of an earlier test is large enough.
          pthread_attr_t large;
          ::pthread_attr_init(&large);
          ::pthread_attr_setstacksize(&large, std::size_t{1} << 30);
          ::pthread_setattr_default_np(&large);
        });
  EXPECT_EQ(Await(), 2);
  EXPECT_THAT(process::testing::ReadFile(scratch_ / "stderr"),
              AllOf(HasSubstr("no thread can be started"), HasSubstr("ulimit -v")));
}

TEST_F(GuardTest, SparesChildrenThatItDidNotStart) {
  Begin([](process::Lifeline&) { return 0; },
        [this] {
          const pid_t child = ::fork();
          if (child == 0) {
            ::pause();
            ::_exit(0);
          }
          std::ofstream(scratch_ / "spared") << child;
        });
  EXPECT_EQ(Await(), 0);
  const pid_t spared = static_cast<pid_t>(std::stol(process::testing::ReadFile(scratch_ / "spared")));
  const auto process = process::ReadProcess(spared);
  ASSERT_TRUE(process);
  EXPECT_NE(process->state, 'Z');
  ::kill(spared, SIGKILL);
}

TEST_F(GuardTest, SurvivesClosedStandardDescriptors) {
  Begin(Job({"cat; exit 6"}), [] {
    ::close(0);
    ::close(1);
  });
  EXPECT_EQ(Await(), 6);
}

}  // namespace
}  // namespace dtrun::node

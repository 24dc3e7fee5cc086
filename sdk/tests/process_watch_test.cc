#include "dtrun/plugin/process_watch.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dtrun::sdk {
namespace {

bool Readable(int descriptor, int timeout) {
  pollfd wait{descriptor, POLLIN, 0};
  return poll(&wait, 1, timeout) == 1;
}

// A child that lives until it is killed, and its identity.
class Child {
 public:
  Child() {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      const std::string identity = ProcessIdentity();
      if (write(ends[1], identity.data(), identity.size()) < 0) _exit(1);
      for (;;) pause();
    }
    char text[256];
    const ssize_t size = read(ends[0], text, sizeof text);
    if (size > 0) identity_.assign(text, static_cast<std::size_t>(size));
    close(ends[0]);
    close(ends[1]);
  }
  ~Child() { Collect(); }
  void Kill() const { kill(pid_, SIGKILL); }
  void Collect() {
    if (pid_ <= 0) return;
    Kill();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  const std::string& identity() const { return identity_; }

 private:
  pid_t pid_ = -1;
  std::string identity_;
};

TEST(WatchProcess, TellsOfADeathBeforeTheParentCollectsIt) {
  Child child;
  const int watch = WatchProcess(child.identity());
  ASSERT_GE(watch, 0);
  EXPECT_FALSE(Readable(watch, 0));
  child.Kill();
  EXPECT_TRUE(Readable(watch, 10'000));
  close(watch);
}

TEST(WatchProcess, TellsAtOnceOfAProcessThatIsGone) {
  Child child;
  child.Collect();
  const int watch = WatchProcess(child.identity());
  ASSERT_GE(watch, 0);
  EXPECT_TRUE(Readable(watch, 0));
  close(watch);
}

TEST(WatchProcess, IsNotFooledByANumberThatWasUsedAgain) {
  Child child;
  std::string earlier = child.identity();
  earlier.back() = earlier.back() == '0' ? '1' : '0';  // another start
  const int watch = WatchProcess(earlier);
  ASSERT_GE(watch, 0);
  EXPECT_TRUE(Readable(watch, 0));
  close(watch);
}

TEST(WatchProcess, LeavesThisProcessAndOtherHostsAlone) {
  EXPECT_EQ(WatchProcess(ProcessIdentity()), -1);
  const Child child;
  EXPECT_EQ(WatchProcess("another-boot" + child.identity()), -1);
  EXPECT_EQ(WatchProcess(""), -1);
}

TEST(ProcessWatch, NamesTheRanksWhoseProcessesHaveEnded) {
  Child first, second;
  ProcessWatch made;
  made.Add(1, first.identity());
  made.Add(2, second.identity());
  made.Add(3, ProcessIdentity());  // cannot be watched
  ProcessWatch watch;
  watch = std::move(made);
  EXPECT_TRUE(watch.Ended().empty());
  second.Collect();
  EXPECT_EQ(watch.Ended(), std::vector<int>{2});
  watch.Remove(2);
  EXPECT_TRUE(watch.Ended().empty());
}

}  // namespace
}  // namespace dtrun::sdk

#include "dtrun/plugin/process_watch.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

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

TEST(PeerProcess, TellsOfADeathBeforeTheParentCollectsIt) {
  Child child;
  const auto peer = PeerProcess::Find(child.identity());
  ASSERT_TRUE(peer);
  EXPECT_FALSE(peer->Ended());
  EXPECT_FALSE(Readable(peer->descriptor(), 0));
  child.Kill();
  EXPECT_TRUE(Readable(peer->descriptor(), 10'000));
  EXPECT_TRUE(peer->Ended());
}

TEST(PeerProcess, TellsAtOnceOfAProcessThatIsGone) {
  Child child;
  child.Collect();
  const auto peer = PeerProcess::Find(child.identity());
  ASSERT_TRUE(peer);
  EXPECT_TRUE(Readable(peer->descriptor(), 0));
  EXPECT_TRUE(peer->Ended());
}

TEST(PeerProcess, IsNotFooledByANumberThatWasUsedAgain) {
  Child child;
  std::string earlier = child.identity();
  earlier.back() = earlier.back() == '0' ? '1' : '0';  // another start
  const auto peer = PeerProcess::Find(earlier);
  ASSERT_TRUE(peer);
  EXPECT_TRUE(Readable(peer->descriptor(), 0));
  EXPECT_TRUE(peer->Ended());
}

TEST(PeerProcess, LeavesThisProcessAndOtherHostsAlone) {
  EXPECT_FALSE(PeerProcess::Find(ProcessIdentity()));
  const Child child;
  EXPECT_FALSE(PeerProcess::Find("another-boot" + child.identity()));
  EXPECT_FALSE(PeerProcess::Find(""));
}

TEST(PeerProcess, HasOneDescriptorHoweverManyAskForIt) {
  const Child child;
  const auto first = PeerProcess::Find(child.identity());
  EXPECT_EQ(PeerProcess::Find(child.identity()), first);
  ProcessWatch watch;
  watch.Add(1, child.identity());
  std::vector<pollfd> polls;
  watch.AppendTo(polls);
  ASSERT_EQ(polls.size(), 1U);
  EXPECT_EQ(polls[0].fd, first->descriptor());
}

// In a process of its own, which `hinder` keeps from having a pidfd: a peer that lives is not called dead, and
// one that ends is found all the same. Returns the errno of the failed look.
int Hindered(void (*hinder)()) {
  Child child;
  EXPECT_NE(BootId(), "");
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t looker = fork();
  if (looker == 0) {
    hinder();
    ProcessWatch watch;
    watch.Add(1, child.identity());
    const auto peer = PeerProcess::Find(child.identity());
    const bool alive = peer && peer->descriptor() < 0 && !peer->Ended() && watch.Ended().empty();
    const char told = alive ? 'a' : 'x';
    if (write(ends[1], &told, 1) != 1 || !alive) _exit(1);
    while (!peer->Ended() || watch.Ended() != std::vector<int>{1}) usleep(1000);
    _exit(peer->why_unseen());
  }
  close(ends[1]);
  char told = 0;
  EXPECT_EQ(read(ends[0], &told, 1), 1);
  EXPECT_EQ(told, 'a');
  close(ends[0]);
  child.Collect();
  int status = 0;
  waitpid(looker, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <int Number>
void DenyPidfds() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | Number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(2);
}

void UseUpDescriptors() {
  const rlimit few{16, 16};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(2);
  while (dup(0) >= 0) {
  }
}

TEST(PeerProcess, CallsNoPeerDeadThatItMayNotLookAt) {
  EXPECT_EQ(Hindered(DenyPidfds<EPERM>), EPERM);
  EXPECT_EQ(Hindered(DenyPidfds<ENOSYS>), ENOSYS);
  EXPECT_EQ(Hindered(UseUpDescriptors), EMFILE);
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

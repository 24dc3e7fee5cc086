#include "tools/dtrun/mpirun/attend.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/agent/rank_fifo.h"

namespace dtrun::mpirun {
namespace {

constexpr int kNotStarted = 127;  // as shells say it

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);  // the rank has left one, if anybody wants it
    ::signal(WTERMSIG(status), SIG_DFL);
    sigset_t own;
    ::sigemptyset(&own);
    ::sigaddset(&own, WTERMSIG(status));
    ::sigprocmask(SIG_UNBLOCK, &own, nullptr);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

}  // namespace

int Attend(const UniqueFd& agent, const std::function<int()>& become) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    fmt::print(stderr, "dtrun: cannot start a process for the rank: {}; raise `ulimit -u`\n",
               std::strerror(errno));
    return kNotStarted;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(::getppid() == self ? become() : kNotStarted);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // An agent that is gone ends all of this.
  static_cast<void>(agent::TellEnd(agent, {child, status}));
  EndAs(status);
}

}  // namespace dtrun::mpirun

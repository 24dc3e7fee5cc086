#include "tools/dtrun/mpirun/attend.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "core/base/standard_output.h"
#include "core/process/rank_fifo.h"

namespace dtrun::mpirun {
namespace {

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);  // the rank has already written one, if enabled
    ::signal(WTERMSIG(status), SIG_DFL);
    sigset_t own;
    ::sigemptyset(&own);
    ::sigaddset(&own, WTERMSIG(status));
    ::sigprocmask(SIG_UNBLOCK, &own, nullptr);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

// False: terminate the rank.
bool WatchUntilEnough(pid_t child, const std::function<Look(pid_t)>& look) {
  constexpr std::chrono::milliseconds kFirst{50}, kLongest{32'000};
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto ended = [child] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  };
  for (std::chrono::milliseconds pause = kFirst;; pause = std::min(2 * pause, kLongest)) {
    pollfd end{handle.get(), POLLIN, 0};
    const int ready = ::poll(&end, 1, static_cast<int>(pause.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready != 0 || (!handle && ended())) return true;
    const Look seen = look(child);
    if (seen != Look::kAgain) return seen == Look::kEnough;
  }
}

}  // namespace

int Attend(const UniqueFd& agent, const std::function<int()>& become,
           const std::function<Look(pid_t rank)>& look) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    PrintMessage("dtrun: cannot start a process for the rank: {}; raise `ulimit -u`\n", std::strerror(errno));
    return kNotStarted;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(::getppid() == self ? become() : kNotStarted);
  }
  const bool fits = WatchUntilEnough(child, look);
  if (!fits) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!fits) status = W_EXITCODE(1, 0);
  // If the agent is gone, this process is ended anyway.
  static_cast<void>(process::TellEnd(agent, {child, status}));
  EndAs(status);
}

}  // namespace dtrun::mpirun

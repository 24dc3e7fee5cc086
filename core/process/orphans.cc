#include "core/process/orphans.h"

#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace dtrun::process {

int ReapWhile(const std::function<int()>& work) {
  std::atomic<bool> over = false;
  int code = 0;
  const pthread_t self = ::pthread_self();
  std::thread worker([&] {
    code = work();
    over = true;
    ::pthread_kill(self, SIGCHLD);
  });
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  while (!over) {
    siginfo_t info{};
    while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WNOTHREAD) == 0 && info.si_pid != 0) info = {};
    if (!over) ::sigwaitinfo(&ended, nullptr);
  }
  worker.join();
  return code;
}

void ReapOthers(pid_t kept) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == kept) return;  // the caller notices its end soon, and then all are reaped
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace dtrun::process

#include "core/plugin/probe_keeper.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "core/base/number.h"

namespace dtrun::plugin {
namespace {

constexpr std::chrono::seconds kPatience{1};

// The fourth field of "PID (NAME) STATE PARENT ..."; NAME may contain parentheses and blanks.
pid_t ParentOf(const std::filesystem::path& process) {
  std::ifstream in(process / "stat");
  std::string text;
  std::getline(in, text, '\0');
  const std::size_t end = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (end == text.npos || std::sscanf(text.c_str() + end + 1, " %c %d", &state, &parent) != 2) return 0;
  return parent;
}

void KillChildren() {
  std::error_code gone;
  for (std::filesystem::directory_iterator at("/proc", gone), end; !gone && at != end; at.increment(gone)) {
    const auto pid = NumberOf<pid_t>(at->path().filename().native());
    if (pid && ParentOf(at->path()) == ::getpid()) ::kill(*pid, SIGKILL);
  }
}

// Orphans of killed processes become children of this process, a subreaper.
void EndAll() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    if (std::chrono::steady_clock::now() >= deadline) return;
    KillChildren();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

[[noreturn]] void EndAs(int status) {
  EndAll();
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const rlimit none{0, 0};  // the child has already dumped core if enabled
  ::setrlimit(RLIMIT_CORE, &none);
  sigset_t all;
  ::sigfillset(&all);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  ::raise(WTERMSIG(status));
  ::_exit(1);
}

[[noreturn]] void Keep(pid_t child, const sigset_t& awaited) {
  for (;;) {
    const int number = ::sigwaitinfo(&awaited, nullptr);
    if (number == SIGTERM) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);  // usually the only process; then no search is needed
      EndAs(SIGTERM);
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG | WUNTRACED) != child) continue;
    if (!WIFSTOPPED(status)) EndAs(status);
    ::raise(SIGSTOP);  // until the observer of the stop continues it
    ::kill(child, SIGCONT);
  }
}

}  // namespace

Status KeepProbe(int socket) {
  sigset_t awaited, before;
  ::sigemptyset(&awaited);
  ::sigaddset(&awaited, SIGTERM);
  ::sigaddset(&awaited, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &awaited, &before);
  const pid_t keeper = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const int number = errno;
    Error error = Error::System("start a process for the plugin, in its probe", number);
    if (number == EAGAIN) error.text += "; raise `ulimit -u`";
    return error;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) ::_exit(2);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return {};
  }
  ::close(socket);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  Keep(child, awaited);
}

}  // namespace dtrun::plugin

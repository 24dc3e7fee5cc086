#include "core/agent/process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/base/fd.h"
#include "core/base/kernel_file.h"

namespace dtrun::agent {
namespace {

namespace fs = std::filesystem;

// Children by way of each thread's "children" file. Its lists may miss an entry while
// processes end; callers that need certainty repeat until nothing is found.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (fs::directory_iterator it(tasks, gone), end; !gone && it != end; it.increment(gone)) {
    std::istringstream list(ReadKernelFile(it->path().string() + "/children"));
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

// Kernels without CONFIG_PROC_CHILDREN: every process of the machine, by parent.
std::multimap<pid_t, pid_t> ChildrenOfAll() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(it->path().filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    if (auto process = ReadProcess(pid)) children.emplace(process->parent, pid);
  }
  return children;
}

bool HasChildrenFiles() {
  static const bool has = ::access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

// No child at all: the kernel's own word for it.
bool Childless() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

// Waits until one of these children ends, or `timeout` is over.
void AwaitAny(const std::vector<pid_t>& children, std::chrono::milliseconds timeout) {
  std::vector<UniqueFd> handles;
  std::vector<pollfd> polls;
  for (pid_t child : children) {
    UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    if (!handle) continue;
    polls.push_back({handle.get(), POLLIN, 0});
    handles.push_back(std::move(handle));
  }
  ::poll(polls.data(), polls.size(), static_cast<int>(timeout.count()));
}

}  // namespace

std::optional<Process> ReadProcess(pid_t pid) {
  const std::string stat = ReadKernelFile("/proc/" + std::to_string(pid) + "/stat");
  const auto open = stat.find('('), close = stat.rfind(')');  // a name may hold both
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.pid = pid;
  process.name = stat.substr(open + 1, close - open - 1);
  std::istringstream rest(stat.substr(close + 1));
  if (!(rest >> process.state >> process.parent >> process.group)) return std::nullopt;
  return process;
}

std::vector<Process> Descendants(pid_t root, const std::vector<pid_t>& spared) {
  std::multimap<pid_t, pid_t> all;
  if (!HasChildrenFiles()) all = ChildrenOfAll();
  auto children_of = [&](pid_t pid) {
    if (HasChildrenFiles()) return ChildrenOf(pid);
    std::vector<pid_t> children;
    for (auto [it, end] = all.equal_range(pid); it != end; ++it) children.push_back(it->second);
    return children;
  };

  std::vector<Process> found;
  for (pid_t pid : children_of(root)) {
    if (std::find(spared.begin(), spared.end(), pid) != spared.end()) continue;
    if (auto process = ReadProcess(pid)) found.push_back(*std::move(process));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (pid_t pid : children_of(found[i].pid)) {
      const bool known = std::any_of(found.begin(), found.end(), [&](auto& p) { return p.pid == pid; });
      if (known) continue;
      if (auto process = ReadProcess(pid)) found.push_back(*std::move(process));
    }
  }
  return found;
}

void BecomeSubreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void SignalDescendants(int signal, const std::vector<pid_t>& spared) {
  for (const Process& process : Descendants(::getpid(), spared)) {
    if (process.state != 'Z') ::kill(process.pid, signal);
  }
}

std::vector<Process> KillDescendants(std::chrono::milliseconds patience, const std::vector<pid_t>& spared) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  for (;;) {
    if (Childless()) return {};
    std::vector<Process> found = Descendants(::getpid(), spared);
    std::vector<pid_t> living_children;
    bool reaped = false;
    for (const Process& process : found) {
      const bool child = process.parent == ::getpid();
      if (process.state != 'Z') {
        ::kill(process.pid, SIGKILL);
        if (child) living_children.push_back(process.pid);
      } else if (child) {
        reaped = ::waitpid(process.pid, nullptr, WNOHANG) > 0 || reaped;
      }
    }
    // With spared children the kernel cannot say "none left", so an empty list is confirmed once.
    if (found.empty() && !spared.empty() && Descendants(::getpid(), spared).empty()) return {};
    if (Clock::now() >= deadline) return found;
    // Orphans appear as children when their parents end: children are all there is to wait for.
    if (!reaped) AwaitAny(living_children, std::chrono::milliseconds(living_children.empty() ? 1 : 50));
  }
}

std::string StartEnvironment(pid_t pid, const std::string& name) {
  const std::string block = '\0' + ReadKernelFile("/proc/" + std::to_string(pid) + "/environ");
  const std::string key = '\0' + name + '=';
  const auto at = block.find(key);
  if (at == std::string::npos) return {};
  const auto begin = at + key.size();
  return block.substr(begin, block.find('\0', begin) - begin);
}

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

}  // namespace dtrun::agent

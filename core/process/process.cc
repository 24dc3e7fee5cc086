#include "core/process/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "core/base/read_file.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr auto kByPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which older headers lack

// Reads the "children" file of each thread. The lists may miss an entry while processes end; callers that
// need certainty repeat until nothing is found.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  for (const fs::path& thread : EntriesOf("/proc/" + std::to_string(pid) + "/task")) {
    std::istringstream list(ReadKernelFile(thread.string() + "/children"));
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

bool HasChildrenFiles() {
  static const bool has = ::access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

// For kernels without CONFIG_PROC_CHILDREN: all processes of the machine, by parent. Otherwise none.
std::multimap<pid_t, pid_t> ChildrenOfAll() {
  std::multimap<pid_t, pid_t> children;
  for (const fs::path& entry : HasChildrenFiles() ? std::vector<fs::path>() : EntriesOf("/proc")) {
    const auto pid = static_cast<pid_t>(std::strtol(entry.filename().c_str(), nullptr, 10));
    const auto process = pid > 0 ? ReadProcess(pid) : std::nullopt;
    if (process) children.emplace(process->parent, pid);
  }
  return children;
}

// Whether this process has no children, according to the kernel (not /proc).
bool Childless() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

std::vector<pid_t> ChildrenIn(const std::multimap<pid_t, pid_t>& all, pid_t pid) {
  if (HasChildrenFiles()) return ChildrenOf(pid);
  std::vector<pid_t> children;
  for (auto [it, end] = all.equal_range(pid); it != end; ++it) children.push_back(it->second);
  return children;
}

// Without spared children every ended child may be reaped. The kernel then reports whether anything is left,
// without /proc: every descendant is below some child of this process.
bool NothingLeft(const std::vector<pid_t>& spared) {
  siginfo_t info{};
  while (spared.empty() && ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0 && info.si_pid != 0)
    info = {};
  return Childless();
}

UniqueFd OpenPid(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Falls back to the pid if a seccomp profile denies pidfds; the caller has just checked the process's
// identity.
bool Signal(const UniqueFd& pidfd, pid_t pid, int signal) {
  if (pidfd && ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0) return true;
  return (!pidfd || errno != ESRCH) && ::kill(pid, signal) == 0;
}

// Kills the living children, reaps the ended ones, and returns the living, which end soon. The kernel
// verifies that a pid is a child of this process; /proc only provides candidates.
std::vector<UniqueFd> KillChildren(const std::vector<pid_t>& spared) {
  if (!ProcIsOurs()) return {};
  const std::multimap<pid_t, pid_t> all = ChildrenOfAll();
  std::vector<UniqueFd> living;
  for (const pid_t pid : ChildrenIn(all, ::getpid())) {
    if (std::ranges::find(spared, pid) != spared.end()) continue;
    UniqueFd child = OpenPid(pid);
    if (!child && errno == ESRCH) continue;
    siginfo_t info{};
    const bool ours = child
                          ? ::waitid(kByPidfd, static_cast<id_t>(child.get()), &info, WEXITED | WNOHANG) == 0
                          : ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0;
    if (ours && info.si_pid == 0 && Signal(child, pid, SIGKILL)) living.push_back(std::move(child));
  }
  return living;
}

// Whether a line of /proc/PID/status such as "SigCgt:	0000000000000200" has the signal.
bool HasSignal(const std::string& status, const std::string& line, int signal) {
  const auto at = status.find('\n' + line + ':');
  if (at == std::string::npos) return false;
  const std::uint64_t mask = std::strtoull(status.c_str() + at + line.size() + 2, nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

// False if it runs as another user.
bool MayKill(const Process& process) { return SendSignal(process, 0) || errno != EPERM; }

// Waits until one of `processes` ends, as far as they are watched, or `timeout` is over.
void AwaitAny(const std::vector<UniqueFd>& processes, std::chrono::milliseconds timeout) {
  std::vector<pollfd> polls;
  for (const UniqueFd& process : processes) polls.push_back({process.get(), POLLIN, 0});
  ::poll(polls.data(), polls.size(), static_cast<int>(timeout.count()));
}

bool IsThere(const Process& process) {
  const auto now = ReadProcess(process.pid);
  return now && now->start == process.start;
}

bool LookAtProc() {
  const std::string status = '\n' + ReadKernelFile("/proc/self/status");
  const auto at = status.find("\nNSpid:");
  if (at == std::string::npos) return ::access("/proc/self/status", R_OK) == 0;  // kernel without NSpid
  std::istringstream numbers(status.substr(at + 7, status.find('\n', at + 1) - at - 7));
  pid_t pid = 0, inner = 0;
  return numbers >> pid && pid == ::getpid() && !(numbers >> inner);
}

}  // namespace

std::optional<Process> ReadProcess(pid_t pid) {
  const std::string stat = ReadKernelFile("/proc/" + std::to_string(pid) + "/stat");
  const auto open = stat.find('('), close = stat.rfind(')');  // a name may contain both
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.pid = pid;
  process.name = stat.substr(open + 1, close - open - 1);
  std::istringstream rest(stat.substr(close + 1));
  // By the numbers of proc_pid_stat(5), ascending.
  auto field = [&rest, at = 6](int number) mutable {
    for (std::string other; at < number; ++at) rest >> other;
    std::int64_t value = 0;
    rest >> value;
    ++at;
    return value;
  };
  if (!(rest >> process.state >> process.parent >> process.group)) return std::nullopt;
  static const std::int64_t tick = 1'000'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L),
                            page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t user = field(14), system = field(15);
  const std::int64_t user_of_children = field(16), system_of_children = field(17);
  process.used = std::chrono::nanoseconds((user + system) * tick);
  process.used_by_children = std::chrono::nanoseconds((user_of_children + system_of_children) * tick);
  process.start = static_cast<std::uint64_t>(field(22));
  process.memory = field(24) * page;
  process.last_processor = static_cast<int>(field(39));
  return rest ? std::optional(process) : std::nullopt;
}

bool ProcIsOurs() {
  static const bool ours = LookAtProc();
  return ours;
}

std::vector<Process> Descendants(pid_t root, const std::vector<pid_t>& spared) {
  if (!ProcIsOurs()) return {};
  const std::multimap<pid_t, pid_t> all = ChildrenOfAll();
  std::vector<Process> found;
  for (const pid_t pid : ChildrenIn(all, root)) {
    if (std::ranges::find(spared, pid) != spared.end()) continue;
    if (auto process = ReadProcess(pid)) found.push_back(*std::move(process));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const pid_t pid : ChildrenIn(all, found[i].pid)) {
      if (std::ranges::find(found, pid, &Process::pid) != found.end()) continue;
      if (auto process = ReadProcess(pid)) found.push_back(*std::move(process));
    }
  }
  return found;
}

void BecomeSubreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

UniqueFd Open(const Process& process) {
  UniqueFd pidfd = OpenPid(process.pid);
  if (!pidfd || IsThere(process)) return pidfd;
  errno = ESRCH;
  return {};
}

bool SendSignal(const Process& process, int signal) {
  const UniqueFd pidfd = OpenPid(process.pid);
  if (!pidfd && errno == ESRCH) return false;
  if (IsThere(process)) return Signal(pidfd, process.pid, signal);
  errno = ESRCH;
  return false;
}

bool Survives(pid_t pid, int signal, std::chrono::steady_clock::time_point deadline) {
  if (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH) return true;
  if (!ProcIsOurs()) return false;
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string status = ReadKernelFile(folder + "/status");
  if (HasSignal(status, "SigCgt", signal) || HasSignal(status, "SigIgn", signal)) return true;
  for (;;) {
    bool asleep = true;
    const std::vector<fs::path> threads = EntriesOf(folder + "/task");
    for (const fs::path& thread : threads) {
      const std::string its = ReadKernelFile(thread.string() + "/status");
      if (!HasSignal(its, "SigBlk", signal)) return false;
      asleep = asleep && its.find("\nState:\tS") != std::string::npos;
    }
    if (threads.empty()) return false;
    if (asleep || std::chrono::steady_clock::now() >= deadline) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void SignalDescendants(int signal, const std::vector<pid_t>& spared) {
  for (const Process& process : Descendants(::getpid(), spared)) {
    SendSignal(process, signal);  // even if it looks like a zombie: other threads may still run
  }
}

// Fork chains outrun a listing of all descendants. But each process of a chain becomes a child of this one as
// soon as its parent has ended. So this kills the children in rounds, and between rounds lists the
// descendants of processes that do not end.
std::vector<Process> KillDescendants(std::chrono::milliseconds patience, const std::vector<pid_t>& spared) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInVain{500}, kRound{20};
  const bool blind = !ProcIsOurs();
  const auto begin = Clock::now();
  for (;;) {
    if (NothingLeft(spared)) return {};
    SignalDescendants(SIGKILL, spared);
    std::vector<UniqueFd> living = KillChildren(spared);
    const auto again = Clock::now() + kRound;
    while (!living.empty() && Clock::now() < again) {
      AwaitAny(living, std::chrono::milliseconds(5));
      living = KillChildren(spared);
    }
    if (blind) ReapOthers(spared);  // such a /proc lists no children
    const auto spent = Clock::now() - begin;
    if (!living.empty() && spent < patience) continue;
    if (Childless()) return {};
    std::vector<Process> found = Descendants(::getpid(), spared);
    // With spared children the kernel cannot report "none left", so confirm an empty list once.
    if (found.empty() && !spared.empty() && Descendants(::getpid(), spared).empty()) return {};
    const bool in_vain =
        blind || std::ranges::none_of(found, [](const Process& one) { return MayKill(one); });
    if (spent >= (in_vain ? std::min(patience, kInVain) : patience)) return found;
    AwaitAny({}, std::chrono::milliseconds(1));
  }
}

std::string WhyItStays(const Process& process) {
  if (!MayKill(process)) {
    struct stat info {};
    const bool known = ::stat(fmt::format("/proc/{}", process.pid).c_str(), &info) == 0;
    return fmt::format(
        "process {} ({}) belongs to {}, so dtrun may not end it; that user or root can run `kill {}`",
        process.pid, process.name, known ? fmt::format("user {}", info.st_uid) : "another user", process.pid);
  }
  return fmt::format("process {} ({}, state {}) has not ended after SIGKILL{}", process.pid, process.name,
                     process.state,
                     process.state == 'D' ? ": it waits in the kernel for a disk or a device" : "");
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

void ReapOthers(const std::vector<pid_t>& kept) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (std::ranges::find(kept, info.si_pid) != kept.end()) return;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace dtrun::process

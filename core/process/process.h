// The descendants of this process: finds them through /proc, signals them by pidfd if the kernel has it, and
// ends all.
//
// This process must be a child subreaper, so that orphans of the job become its children instead of init's. A
// pid read from /proc is never signalled directly: it may have been reused, or /proc may belong to another
// PID namespace. Any thread, but one at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"

namespace dtrun::process {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';         // as in /proc/PID/stat; 'Z' is a zombie
  std::uint64_t start = 0;  // in clock ticks since boot; distinguishes processes with the same pid
  std::string name;
  std::chrono::nanoseconds used{};              // of processors
  std::chrono::nanoseconds used_by_children{};  // those that it has waited for
  std::int64_t memory = 0;                      // resident bytes
  int last_processor = -1;                      // that it ran on
};

// Empty when there is no such process.
std::optional<Process> ReadProcess(pid_t pid);

// Whether /proc shows the pids of this process's own PID namespace.
bool ProcIsOurs();

// All descendants of `root`, parents before children, zombies included. Leaves out the `spared` children of
// `root` and their descendants. A snapshot: processes may start or end meanwhile. Empty if /proc belongs to
// another PID namespace.
std::vector<Process> Descendants(pid_t root, const std::vector<pid_t>& spared = {});

// From now on, orphaned descendants of the calling process become its children.
void BecomeSubreaper();

// A pidfd of exactly the process that was read. Empty if it is gone (errno ESRCH), or if the kernel gives
// none: too few descriptors, or a container's seccomp profile.
UniqueFd Open(const Process& process);

// Signals exactly the process that was read, with or without a pidfd. On failure false with errno set: ESRCH
// if it has ended.
bool SendSignal(const Process& process, int signal);

// Whether the process survives `signal`: it handles, ignores or blocks it, or the default action does not end
// a process. Also false if that cannot be read. A process that starts a program (vfork, posix_spawn) blocks
// every signal until the program has begun. So a process that blocks `signal` and is not asleep is checked
// again until `deadline`.
bool Survives(pid_t pid, int signal, std::chrono::steady_clock::time_point deadline);

// "process 42 (sudo) belongs to user 0, …", for a process returned by KillDescendants.
std::string WhyItStays(const Process& process);

// Sends `signal` once to every descendant of this process, without waiting.
void SignalDescendants(int signal, const std::vector<pid_t>& spared = {});

// How long agent and guard keep killing the leftovers of a job.
inline constexpr std::chrono::seconds kKillPatience{10};

// Kills and reaps until this process has no descendants or `patience` is over. Returns what is left:
// processes that SIGKILL has not ended yet (uninterruptible sleep in the kernel), or fork chains that are
// faster than the search.
std::vector<Process> KillDescendants(std::chrono::milliseconds patience,
                                     const std::vector<pid_t>& spared = {});

// The value of `name` in the environment that the process started with. Empty if unset or unreadable.
std::string StartEnvironment(pid_t pid, const std::string& name);

// "SIGKILL"; "signal 64" for those without a name.
std::string SignalName(int signal);

// Reaps the orphans that a child subreaper adopts, as soon as they end.
//
// The kernel makes an orphan a child of the subreaper's first thread, and a started process a child of the
// thread that started it. So the agent's first thread only reaps, and its work runs in a second thread. That
// way the reaper never takes the exit status of a child that the other thread waits for.

// Runs `work` in a new thread and returns its result; the calling thread reaps meanwhile. REQUIRES: the
// calling thread is the process's first, and SIGCHLD is blocked. Throws std::system_error if no thread can be
// started.
int ReapWhile(const std::function<int()>& work);

// Reaps the ended children of this process up to the first that is `kept`: the caller notices that end soon.
// For a process that waits for no other children.
void ReapOthers(const std::vector<pid_t>& kept);

}  // namespace dtrun::process

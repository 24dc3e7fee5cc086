// The processes below this one: found through /proc, signalled by pidfd where the kernel has those, ended to the last.
//
// Relies on this process being a child subreaper, so that orphans of the job become its
// children instead of init's. A number that was read in /proc is never signalled as such: it may be
// another process's by now, or always was where /proc belongs to another PID namespace. Any thread, but
// one at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
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
  std::uint64_t start = 0;  // in clock ticks since boot: tells processes of one number apart
  std::string name;
};

// Empty when there is no such process.
std::optional<Process> ReadProcess(pid_t pid);

// Whether the numbers in /proc are those of this process's own PID namespace.
bool ProcIsOurs();

// Every process below `root`, parents before children, zombies included; none at or below
// the `spared` children of `root`. A snapshot: processes may start or end meanwhile. Empty where /proc is
// not ours.
std::vector<Process> Descendants(pid_t root, const std::vector<pid_t>& spared = {});

// Orphans of the calling process's descendants become its children from now on.
void BecomeSubreaper();

// The pidfd of the very process that was read. Empty when it is gone, errno ESRCH, and where the kernel gives
// none: too few descriptors, or a container's seccomp profile.
UniqueFd Open(const Process& process);

// To the very process that was read, whether there is a pidfd of it or not. False, with errno, where that
// fails: ESRCH when it has ended.
bool SendSignal(const Process& process, int signal);

// Whether the process goes on when it gets `signal`: it handles, ignores or blocks it, or such a signal
// ends nobody. False also when that cannot be read. Who starts a program (vfork, posix_spawn) blocks every
// signal until that has begun: a process that blocks it and is not asleep is looked at again, until
// `deadline` at most.
bool Survives(pid_t pid, int signal, std::chrono::steady_clock::time_point deadline);

// "process 42 (sudo) belongs to user 0, …": of one that KillDescendants has returned.
std::string WhyItStays(const Process& process);

// Sends `signal` to every process below this one, once, without waiting.
void SignalDescendants(int signal, const std::vector<pid_t>& spared = {});

// How long agent and guard kill what a job has left.
inline constexpr std::chrono::seconds kKillPatience{10};

// Kills and reaps until nothing is left below this process, or until `patience` is over.
// Returns what is left then: processes that SIGKILL has not ended yet (uninterruptible sleep in the
// kernel), or chains that fork faster than they are found.
std::vector<Process> KillDescendants(std::chrono::milliseconds patience,
                                     const std::vector<pid_t>& spared = {});

// The value of `name` in the environment the process was started with; empty when it is
// unset or cannot be read.
std::string StartEnvironment(pid_t pid, const std::string& name);

// "SIGKILL"; "signal 64" for those without a name.
std::string SignalName(int signal);

}  // namespace dtrun::process

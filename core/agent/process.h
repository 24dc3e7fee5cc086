// The processes below this one: found through /proc, ended to the last.
//
// Relies on this process being a child subreaper, so that orphans of the job become its
// children instead of init's. Any thread, but one at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::agent {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';  // as in /proc/PID/stat; 'Z' is a zombie
  std::string name;
};

// Empty when there is no such process.
std::optional<Process> ReadProcess(pid_t pid);

// Every process below `root`, parents before children, zombies included; none at or below
// the `spared` children of `root`. A snapshot: processes may start or end meanwhile.
std::vector<Process> Descendants(pid_t root, const std::vector<pid_t>& spared = {});

// Orphans of the calling process's descendants become its children from now on.
void BecomeSubreaper();

// Sends `signal` to every process below this one, once, without waiting.
void SignalDescendants(int signal, const std::vector<pid_t>& spared = {});

// Kills and reaps until nothing is left below this process, or until `patience` is over.
// Returns what is left then: processes that even SIGKILL cannot end (uninterruptible
// sleep in the kernel).
std::vector<Process> KillDescendants(std::chrono::milliseconds patience,
                                     const std::vector<pid_t>& spared = {});

// The value of `name` in the environment the process was started with; empty when it is
// unset or cannot be read.
std::string StartEnvironment(pid_t pid, const std::string& name);

// "SIGKILL"; "signal 64" for those without a name.
std::string SignalName(int signal);

}  // namespace dtrun::agent

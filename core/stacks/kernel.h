// What the kernel knows of a process: whether it runs, what it waits in, what it has used.
//
// Reads /proc; any thread, where waiting is allowed: some of its files wait for a process that is stuck.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dtrun::stacks {

struct Task {
  pid_t id = 0;
  std::string name;
  char state = '?';   // as in /proc/PID/stat
  std::string waits;  // "read of descriptor 0 (a pipe)", "clock_nanosleep"; empty: it does not, or not known
  std::uint64_t argument = 0;  // the first one of the system call
  // It waits for something that no other rank gives: time, a child, a terminal, a pipe, a file's lock.
  bool elsewhere = false;
};

// Its threads, the first one first, at most 256.
std::vector<Task> TasksOf(pid_t pid);

// What it has used since it began: processor time of all its threads, bytes read and written.
struct Used {
  std::int64_t processor_ms = 0;
  std::int64_t bytes = 0;
};
Used UsedBy(pid_t pid);

}  // namespace dtrun::stacks

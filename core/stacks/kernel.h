// The kernel's view of a process: whether it runs, what it waits in, and its resource usage.
//
// Reads /proc; any thread that may block: some files block for a stuck process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::stacks {

struct Task {
  pid_t id = 0;
  std::string name;
  char state = '?';   // as in /proc/PID/stat
  std::string waits;  // "read of descriptor 0 (a pipe)", "clock_nanosleep"; empty: not waiting, or unknown
  std::uint64_t argument = 0;  // first argument of the system call
  // It waits for something that does not depend on another rank: time, a child, a terminal, a pipe, a file
  // lock.
  bool elsewhere = false;
  bool naps = false;  // it sleeps, and for less than a second: as between two looks at something
  // Tells one place in the program where it waits from another: by the stack's depth, the call and the length
  // of a sleep. 0: not known.
  std::uint64_t spot = 0;
};

// Its threads, the main thread first, at most 256.
std::vector<Task> TasksOf(pid_t pid);
// That one alone; none if the process is gone.
std::vector<Task> MainTaskOf(pid_t pid);

// Usage since its start: CPU time of all its threads; bytes read and written, without those of torch's store
// server.
struct Used {
  std::int64_t processor_ms = 0;
  std::int64_t kernel_ms = 0;  // the part of it in the kernel
  std::int64_t bytes = 0;
  std::int64_t resident = 0;  // bytes in memory now
  std::int64_t faults = 0;    // page faults that waited for a disk
};
Used UsedBy(pid_t pid);

// Bytes that this host's network interfaces, without loopback, have received and sent since they came up.
// `table`: text of /proc/net/dev.
std::int64_t NetworkBytes(std::string_view table);
std::int64_t NetworkBytes();

// How the scheduler has treated its first thread since its start; zeros where the kernel does not tell.
struct Scheduled {
  std::int64_t sleeps = 0;             // how often it has gone to sleep
  std::chrono::nanoseconds ran{};      // on a processor
  std::chrono::nanoseconds delayed{};  // ready to run, without a processor
};
Scheduled ScheduledOf(pid_t pid);

// The process that holds it; 0: unknown, for example if another host or a container holds it. `locks`: text
// of /proc/locks.
pid_t HolderOfLock(std::string_view locks, pid_t waits);
pid_t HolderOfLock(pid_t waits);

}  // namespace dtrun::stacks

// Which process holds the file lock that a process waits for (flock, fcntl).
//
// Reads /proc/locks, which makes the kernel block all file locks for a moment, so call it only for a process
// seen waiting. Any thread.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dtrun::stacks {

// The process that holds it; 0: unknown, for example if another host or a container holds it. `locks`: text
// of /proc/locks.
pid_t HolderOfLock(std::string_view locks, pid_t waits);
pid_t HolderOfLock(pid_t waits);

}  // namespace dtrun::stacks

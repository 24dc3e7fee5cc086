// Who holds the lock of a file that a process waits for (flock, fcntl).
//
// Reads /proc/locks, for which the kernel holds up all locks of files for a moment: only for a process that
// was seen to wait. Any thread.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dtrun::stacks {

// The process that has taken it; 0: not known, as where another host holds it, or a container. `locks`: what
// /proc/locks says.
pid_t HolderOfLock(std::string_view locks, pid_t waits);
pid_t HolderOfLock(pid_t waits);

}  // namespace dtrun::stacks

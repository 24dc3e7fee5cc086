// Finds the processes that have a file open or mapped, through /proc. Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <vector>

namespace dtrun::process {

// Whether `pid` has the file with this inode mapped. Also false if that cannot be read.
bool Maps(pid_t pid, const struct stat& file);

// As Maps, but the file may be mapped or open.
bool Holds(pid_t pid, const struct stat& file);

// All visible processes of this user except this one and `excepted`.
std::vector<pid_t> ProcessesOfThisUser(const std::vector<pid_t>& excepted);

// Whether the kernel grants a write lease on the open `file`. It does if no other process has the file open
// or mapped, in any namespace. Also false where leases are not available.
bool IsOnlyHolder(int file);

}  // namespace dtrun::process

// Who has a file open or mapped, by /proc. Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <vector>

namespace dtrun::process {

// Whether `pid` has the file of this inode mapped. False also when that cannot be read.
bool Maps(pid_t pid, const struct stat& file);

// Likewise mapped, or open.
bool Holds(pid_t pid, const struct stat& file);

// Every process of this user's that is seen, but for this one and `excepted`.
std::vector<pid_t> ProcessesOfThisUser(const std::vector<pid_t>& excepted);

// Whether the kernel grants a write lease on the open `file`, which it does when nobody else has it open or
// mapped, in whatever namespace. False also where it cannot say.
bool NobodyElseHas(int file);

}  // namespace dtrun::process

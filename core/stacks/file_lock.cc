#include "core/stacks/file_lock.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/base/kernel_file.h"
#include "core/base/text.h"

namespace dtrun::stacks {

// "4: FLOCK  ADVISORY  WRITE 3517 fd:00:2531448 0 EOF", followed by "4: -> FLOCK  ADVISORY  WRITE 3548 ..."
// for each waiting process.
pid_t HolderOfLock(std::string_view locks, pid_t waits) {
  pid_t holder = 0;
  for (const std::string_view line : LinesOf(locks)) {
    std::istringstream fields{std::string(line)};
    std::string number, type, mode, access;
    fields >> number >> type;
    const bool waiting = type == "->";
    if (waiting) fields >> type;
    pid_t pid = 0;
    if (!(fields >> mode >> access >> pid)) continue;
    if (!waiting) holder = pid;
    if (waiting && pid == waits)
      return std::max(holder, 0);  // -1: the lock belongs to an open file description
  }
  return 0;
}

pid_t HolderOfLock(pid_t waits) { return HolderOfLock(ReadKernelFile("/proc/locks"), waits); }

}  // namespace dtrun::stacks

#include "core/process/file_holders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/kernel_file.h"

namespace dtrun::process {

bool Maps(pid_t pid, const struct stat& file) {
  const std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", pid));
  const std::string entry =
      fmt::format(" {:02x}:{:02x} {} ", major(file.st_dev), minor(file.st_dev), file.st_ino);
  return maps.find(entry) != std::string::npos;
}

// Check descriptors first: a process may close one once it has mapped the file.
bool Holds(pid_t pid, const struct stat& file) {
  for (const auto& descriptor : EntriesOf(fmt::format("/proc/{}/fd", pid))) {
    struct stat open {};
    if (::stat(descriptor.c_str(), &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino)
      return true;
  }
  return Maps(pid, file);
}

std::vector<pid_t> ProcessesOfThisUser(const std::vector<pid_t>& excepted) {
  std::vector<pid_t> found;
  for (const auto& entry : EntriesOf("/proc")) {
    const pid_t pid = std::atoi(entry.filename().c_str());
    struct stat info {};
    if (pid > 0 && pid != ::getpid() && ::stat(entry.c_str(), &info) == 0 && info.st_uid == ::geteuid() &&
        std::ranges::find(excepted, pid) == excepted.end())
      found.push_back(pid);
  }
  return found;
}

bool IsOnlyHolder(int file) {
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return false;
  ::fcntl(file, F_SETLEASE, F_UNLCK);
  return true;
}

}  // namespace dtrun::process

// Segments in /dev/shm that processes of the job made and could not remove because dtrun ended them.
//
// A segment belongs to the job if its name is one that libraries use (torch_…, psm_…, nccl-…), it appeared
// after the generation was prepared, and the job made it. The job made it if its name contains the pid of a
// process of the job, or if at first sight a process of the job had it and no other process of this user did.
// It is removed if a process of the job had it mapped before being signalled and no process has it any more.
// dtrun never touches names that a program chooses itself, such as a data set kept there for the next job.
// Owned by the local host; loop thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/fd.h"

namespace dtrun::process {

// Finds the processes that have a file open or mapped, through /proc. Any thread.

// Whether `pid` has the file with this inode mapped. Also false if that cannot be read.
bool Maps(pid_t pid, const struct stat& file);

// As Maps, but the file may be mapped or open.
bool Holds(pid_t pid, const struct stat& file);

// All visible processes of this user except this one and `excepted`.
std::vector<pid_t> ProcessesOfThisUser(const std::vector<pid_t>& excepted);

// Whether the kernel grants a write lease on the open `file`. It does if no other process has the file open
// or mapped, in any namespace. Also false where leases are not available.
bool IsOnlyHolder(int file);

class Segments {
 public:
  using Processes = std::function<std::vector<pid_t>()>;

  // Segments that are in `folder` now are never removed. Takes over SIGURG of this thread, which must be the
  // one that waits for the descriptor.
  explicit Segments(std::filesystem::path folder = "/dev/shm");

  // Readable if a file has appeared since the last Note; -1: the folder cannot be watched.
  int descriptor() const { return appeared_.get(); }
  // Finds out which process made the new files. Call it as soon as the descriptor is readable, or a few times
  // a second. `processes`, those of the job, is only called if there are new files.
  void Note(const Processes& processes);
  // Call before the processes of the job are signalled.
  void Look(const Processes& processes);
  // Whether there are new torch segments that were never seen with a process of the job: torch's manager may
  // know them.
  bool TorchsWait() const;
  // Call after all processes have ended. Returns the removed names.
  std::vector<std::string> Remove();

 private:
  struct Found {
    std::string name;
    struct stat info {};
  };

  // Files of this user with a library's name that did not exist at the start.
  std::vector<Found> Appeared() const;
  bool IsOurs(const Found& found) const;

  std::filesystem::path folder_;
  // Uses dnotify with its signal blocked in this thread and read here. The kernel takes up to 20 ms to close
  // an inotify descriptor, which would delay the end of every job.
  UniqueFd watch_, appeared_;
  std::set<ino_t> before_;
  std::map<ino_t, bool> made_by_job_;
  std::map<std::string, ino_t> ours_;
};

}  // namespace dtrun::process

// Segments in /dev/shm that processes of the job made and could not remove, because dtrun ended them.
//
// A segment is the job's when libraries name such things so (torch_…, psm_…, nccl-…), it appeared after the
// generation was prepared, and the job made it: its name has the number of a process of the job, or, as it
// was first seen, a process of the job had it and no other process of this user. It is removed when a process
// of the job was seen to have it mapped before it was signalled, and nobody has it any more. What a program
// names itself, such as a data set that it keeps there for the next job, is nobody's business but its own.
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

class Segments {
 public:
  using Processes = std::function<std::vector<pid_t>()>;

  // What is in `folder` now stays there. Takes over SIGURG of this thread, which is the one
  // that waits for the descriptor.
  explicit Segments(std::filesystem::path folder = "/dev/shm");

  // Readable once something has appeared since the last Note; -1: it cannot be watched.
  int descriptor() const { return appeared_.get(); }
  // As soon as that is readable, or a few times a second: decides who made what has appeared. `processes`, of
  // the job, are asked for only then.
  void Note(const Processes& processes);
  // Before the processes of the job are signalled.
  void Look(const Processes& processes);
  // Whether torch's are there that have appeared and were not seen with a process of the job: its manager may
  // know them.
  bool TorchsWait() const;
  // After all have ended: the names that were removed.
  std::vector<std::string> Remove();

 private:
  struct Found {
    std::string name;
    struct stat info {};
  };

  // Of this user, named by a library, not there before.
  std::vector<Found> Appeared() const;
  bool IsOurs(const Found& found) const;

  std::filesystem::path folder_;
  // By dnotify, whose signal is read here and blocked in this thread: inotify takes the kernel up to 20 ms to
  // close, for which each job would wait at its end.
  UniqueFd watch_, appeared_;
  std::set<ino_t> before_;
  std::map<ino_t, bool> made_by_job_;
  std::map<std::string, ino_t> ours_;
};

}  // namespace dtrun::process

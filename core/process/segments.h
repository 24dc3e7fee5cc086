// Segments in /dev/shm that processes of the job made and could not remove, because dtrun ended them.
//
// A segment is the job's when libraries name such things so (torch_…, psm_…, nccl-…), it appeared after the
// generation was prepared, and a process of the job was seen to have it mapped before it was signalled. What
// a program names itself, such as a data set that it keeps there for the next job, is nobody's business but
// its own. Owned by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtrun::process {

class Segments {
 public:
  // What is in `folder` now stays there.
  explicit Segments(std::filesystem::path folder = "/dev/shm");

  // Before the processes of the job are signalled; they are asked for only when a segment has appeared.
  void Look(const std::function<std::vector<pid_t>()>& processes);
  // Whether torch's are there that have appeared and were not seen with a process of the job: its manager may
  // know them.
  bool TorchsWait() const;
  // After all have ended: the names that were removed. What any living process has mapped stays.
  std::vector<std::string> Remove();

 private:
  struct Found {
    std::string name;
    ino_t inode = 0;
  };

  // Of this user, named by a library.
  std::vector<Found> List() const;
  bool IsOurs(const Found& found) const;

  std::filesystem::path folder_;
  std::set<ino_t> before_;
  std::map<std::string, ino_t> ours_;
};

}  // namespace dtrun::process

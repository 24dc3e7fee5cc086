// Detects whether the kernel has recently killed a process because memory ran out.
//
// Reads the counter of this process's control group, version 2 or 1. Falls back to the system-wide counter if
// no group can be read. Cheap; loop thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace dtrun::process {

class MemoryEvidence {
 public:
  // `root` is the directory that contains /proc and /sys. `group` is a file of the ranks' own control group;
  // its counter is used if it exists.
  explicit MemoryEvidence(const std::filesystem::path& root = "/", const std::filesystem::path& group = {});

  // Whether the counter has risen since construction.
  bool Rose() const;

 private:
  std::filesystem::path counter_;  // file with a line "oom_kill N"
  std::optional<std::uint64_t> before_;
};

}  // namespace dtrun::process

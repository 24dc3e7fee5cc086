// Whether the kernel has recently killed a process because memory ran out.
//
// Reads the counter of this process's control group, version 2 or 1, or that of the whole
// system where no group can be read. Cheap; loop thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace dtrun::process {

class MemoryEvidence {
 public:
  // `root` is where /proc and /sys are found. The counter in `group`, a file of the ranks' own control group,
  // is taken where there is one.
  explicit MemoryEvidence(const std::filesystem::path& root = "/", const std::filesystem::path& group = {});

  // Whether the counter has risen since this object was made.
  bool Rose() const;

 private:
  std::filesystem::path counter_;  // file with a line "oom_kill N"
  std::optional<std::uint64_t> before_;
};

}  // namespace dtrun::process

// What the control groups of this process allow it: time on processors, processors, memory, tasks. Versions 1
// and 2.
//
// Of a group and those around it, as far as this process sees them, the least counts. No state; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::binding {

struct GroupLimits {
  std::optional<double> processors;      // the quota, as a number of processors: 1.5
  std::optional<std::uint64_t> memory;   // bytes
  std::optional<std::uint64_t> tasks;    // processes and threads
  std::string cpuset;                    // processors, as the kernel lists them: "0-3,8"; empty: not said

  // The quota in whole processors, at least 1; 0: none.
  int whole_processors() const;
};

// The folders of this process's group in the hierarchy of `controller` and of the groups around it, the
// outermost that is mounted first; empty `controller`: version 2. A container may have its own group mounted
// at the top, and see in /proc the path that it has outside.
std::vector<std::filesystem::path> GroupFolders(const std::filesystem::path& root,
                                                const std::string& controller);

// `root` is where /proc and /sys are found.
GroupLimits ReadGroupLimits(const std::filesystem::path& root = "/");

}  // namespace dtrun::binding

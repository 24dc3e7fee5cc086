// What the control groups of this process allow it: time on processors, memory, tasks. Versions 1 and 2.
//
// Of a group and those around it, as far as this process sees them, the least counts. No state; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace dtrun::binding {

struct GroupLimits {
  std::optional<double> processors;      // the quota, as a number of processors: 1.5
  std::optional<std::uint64_t> memory;   // bytes
  std::optional<std::uint64_t> tasks;    // processes and threads

  // The quota in whole processors, at least 1; 0: none.
  int whole_processors() const;
};

// `root` is where /proc and /sys are found.
GroupLimits ReadGroupLimits(const std::filesystem::path& root = "/");

}  // namespace dtrun::binding

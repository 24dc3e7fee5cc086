// The limits of this process's control groups: CPU time, processors, memory, tasks. Versions 1 and 2.
//
// Each limit is the minimum over the group and its ancestors, as far as this process can see them. No state;
// any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::binding {

struct GroupLimits {
  std::optional<double> processors;     // the quota, as a number of processors: 1.5
  std::optional<std::uint64_t> memory;  // bytes
  std::optional<std::uint64_t> tasks;   // processes and threads
  std::string cpuset;                   // processors, as the kernel lists them: "0-3,8"; empty: unknown

  // The quota in whole processors, at least 1; 0: none.
  int whole_processors() const;
};

// The folders of this process's group and its visible ancestors in the hierarchy of `controller`, outermost
// first; empty `controller`: version 2. In a container, the mount may start at the container's own group
// while /proc shows the path outside.
std::vector<std::filesystem::path> GroupFolders(const std::filesystem::path& root,
                                                const std::string& controller);

// `root` contains /proc and /sys.
GroupLimits ReadGroupLimits(const std::filesystem::path& root = "/");

}  // namespace dtrun::binding

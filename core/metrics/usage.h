// What the processes of this host's ranks have used, read from /proc.
//
// Loop thread: one small file for each process of the job, and no file that a stuck process can block.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

namespace dtrun::metrics {

struct Usage {
  std::chrono::nanoseconds processor = {};  // with its descendants that live, and those it has waited for
  std::int64_t memory = 0;                  // resident bytes, with its descendants
};

// Of each of `pids`, children of this process or below them. Those that have ended are left out.
std::map<pid_t, Usage> UsageOf(const std::vector<pid_t>& pids);

}  // namespace dtrun::metrics

#include "core/metrics/usage.h"

#include <unistd.h>

#include "core/process/process.h"

namespace dtrun::metrics {
std::map<pid_t, Usage> UsageOf(const std::vector<pid_t>& pids) {
  std::map<pid_t, Usage> used;
  if (pids.empty()) return used;
  std::map<pid_t, pid_t> belongs;  // process -> the one of `pids` above it
  for (const pid_t pid : pids) belongs[pid] = pid;
  for (const process::Process& process : process::Descendants(::getpid())) {  // parents come first
    if (const auto above = belongs.find(process.parent); above != belongs.end())
      belongs.try_emplace(process.pid, above->second);
    const auto rank = belongs.find(process.pid);
    if (rank == belongs.end() || process.state == 'Z') continue;
    used[rank->second].processor += process.used + process.used_by_children;
    used[rank->second].memory += process.memory;
  }
  return used;
}

}  // namespace dtrun::metrics

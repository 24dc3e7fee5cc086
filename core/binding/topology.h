// The processors of one host that a job may use, for placing ranks.
//
// Read from the machine by ReadMachine, or from text sent by another host, so that the root can
// place ranks on hosts where it has never run. Values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::binding {

struct Core {
  int socket = 0;  // the system's numbers
  int numa = 0;
  std::vector<int> processors;  // its usable hardware threads, ascending, never empty

  bool operator==(const Core&) const = default;
};

struct Topology {
  std::vector<Core> cores;  // sorted by socket, then NUMA node

  int quota = 0;  // CPU quota of its control group, in processors; 0: no limit

  int processor_count() const;
  // The number of cores that ranks can keep busy: at most the quota, and at least 1.
  int core_count() const;
  bool operator==(const Topology&) const = default;
};

// "0.0=0+4,1+5;1.1=2+6,3+7": on socket 0 and NUMA node 0, two cores with the processors 0, 4 and 1,
// 5; then socket 1 and node 1. A suffix "@3": a quota of 3. Parse(ToText(t)) == t.
std::string ToText(const Topology& topology);
Result<Topology> ParseTopology(std::string_view text);

}  // namespace dtrun::binding

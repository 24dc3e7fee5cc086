// The processors of one host that a job may use, as far as placing ranks needs them.
//
// Read from the machine by ReadMachine, or from text that another host has sent, so the
// root can place the ranks of hosts it has never run on. Values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::binding {

struct Core {
  int socket = 0;  // numbers are the system's
  int numa = 0;
  std::vector<int> processors;  // its hardware threads that may be used, ascending, never empty

  bool operator==(const Core&) const = default;
};

struct Topology {
  std::vector<Core> cores;  // neighbours stand together: by socket, then NUMA node

  int quota = 0;  // time of that many processors is all that its control group allows; 0: no limit

  int processor_count() const;
  // Cores that ranks can keep busy: no more than the quota, and at least 1 of any.
  int core_count() const;
  bool operator==(const Topology&) const = default;
};

// "0.0=0+4,1+5;1.1=2+6,3+7": of socket 0 and NUMA node 0, two cores with the processors 0, 4
// and 1, 5; then of socket 1 and node 1. "@3" behind them: a quota of 3. Parse(ToText(t)) == t.
std::string ToText(const Topology& topology);
Result<Topology> ParseTopology(std::string_view text);

}  // namespace dtrun::binding

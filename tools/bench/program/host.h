// The machine that figures come from: what decides whether two runs may be compared. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace dtrun::bench {

struct Host {
  std::string name, kernel, processor;
  int cores = 0;                      // that this process may use
  double load = 0;                    // average of the last minute
  std::uint64_t available_bytes = 0;  // of memory; 0: unknown

  // More than half a core's worth of other work for every core.
  bool busy() const { return load > 0.5 * cores; }
};

Host ThisHost();

}  // namespace dtrun::bench

// The machine of a measurement: the facts that decide whether two runs are comparable. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace dtrun::bench {

struct Host {
  std::string name, kernel, processor;
  int cores = 0;                      // available to this process
  double load = 0;                    // average of the last minute
  std::uint64_t available_bytes = 0;  // memory; 0: unknown

  // Other work exceeds half a core per core.
  bool busy() const { return load > 0.5 * cores; }
};

Host ThisHost();

}  // namespace dtrun::bench

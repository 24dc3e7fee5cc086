// Which process of another program keeps a rank's processors busy.
//
// Compares the CPU times of all processes of this host at two moments. Reads /proc/PID/stat of each, which
// takes milliseconds on a host with hundreds of processes: call Scan only for ranks that lack processors.
// Owned by the wait watch; loop thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dtrun::node {

struct Rival {
  pid_t pid = 0;
  std::string command;  // its name, printable
  auto operator<=>(const Rival&) const = default;
};

class Rivals {
 public:
  // Reads the CPU times of the processes that do not descend from this one. At most once a second, else does
  // nothing.
  void Scan();
  // The process that used most of the processors that `pid` may use, between the last two scans; none if it
  // used less than a tenth of one.
  std::optional<Rival> Of(pid_t pid) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Used {
    std::uint64_t start = 0;         // distinguishes processes with the same pid
    std::chrono::nanoseconds all{};  // of CPU time
    std::chrono::nanoseconds now{};  // that since the scan before
    int processor = -1;              // the last one
    std::string command;
  };

  std::map<pid_t, Used> used_;  // of the last scan
  Clock::time_point at_{};
  double seconds_ = 0;  // between the last two scans; 0: there was only one, or they were too far apart
};

}  // namespace dtrun::node

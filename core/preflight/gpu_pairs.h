// Which GPUs of a host read each other's memory, read from the facts of a backend that has tried it.
//
// Values; pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dtrun::preflight {

// Device `to` reads the memory of `from`.
struct GpuPair {
  int from = 0, to = 0;
  std::string verdict;  // "proven", "refused", "broken", "not tried"
  std::string reason;   // the rate of a proven one
};

struct GpuPairs {
  std::vector<std::string> devices;  // PCI bus ids
  std::vector<GpuPair> pairs;        // all of them
};

// Of fewer than two devices when the backend has not said anything of pairs.
GpuPairs ReadGpuPairs(const std::vector<std::pair<std::string, std::string>>& facts);

bool AllProven(const GpuPairs& gpus);

// Readers in rows, whose memory in columns; then what keeps single ones. Lines without an end.
std::string Table(const GpuPairs& gpus);

}  // namespace dtrun::preflight

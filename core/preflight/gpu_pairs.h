// Which GPUs of a host can read each other's memory, from the facts of a backend that has tried it.
//
// Values; pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dtrun::preflight {

// Device `to` reads memory of device `from`.
struct GpuPair {
  int from = 0, to = 0;
  std::string verdict;  // "proven", "refused", "broken", "not tried"
  std::string reason;   // for "proven" the bandwidth
};

struct GpuPairs {
  std::vector<std::string> devices;  // PCI bus ids
  std::vector<GpuPair> pairs;        // all pairs
};

// Has fewer than two devices if the backend has no facts about pairs.
GpuPairs ReadGpuPairs(const std::vector<std::pair<std::string, std::string>>& facts);

bool AllProven(const GpuPairs& gpus);

// One row per reader, one column per owner of the memory; then the reasons for failed pairs. Lines without a
// line ending.
std::string Table(const GpuPairs& gpus);

}  // namespace dtrun::preflight

// Which GPUs of a host read each other's memory, read back from the plan of a run: each pair with what
// was found before the ranks started.
//
// Values; pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

// Device `to` reads the memory of `from`.
struct GpuPair {
  int from = 0, to = 0;
  std::string verdict;  // "proven", "refused", "broken", "not tried"
  std::string reason;   // the rate of a proven one
};

struct GpuHost {
  std::string name;
  std::vector<std::string> devices;  // PCI bus ids
  std::vector<int> ranks;            // that take them, by local rank; empty: not one for each
  std::vector<GpuPair> pairs;        // all of them
};

// The hosts whose backend has said something of pairs.
std::vector<GpuHost> ReadGpus(const nlohmann::ordered_json& plan);

// A line where all pairs agree, else a table with the reasons; hosts that are alike together.
std::string ToText(const std::vector<GpuHost>& hosts);
nlohmann::ordered_json ToJson(const std::vector<GpuHost>& hosts);

}  // namespace dtrun::cli

// The GPU checks of each host before the ranks of a run started, read from its plan.
//
// Values; pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/preflight/gpu_pairs.h"

namespace dtrun::cli {

struct GpuHost {
  std::string name;
  preflight::GpuPairs gpus;
  std::vector<int> ranks;  // ranks that use these GPUs, by local rank; empty: not one rank per GPU
};

// The hosts with a backend that reported on pairs of GPUs.
std::vector<GpuHost> ReadGpus(const Json& plan);

// One line if all pairs have the same result, else a table with the reasons. Groups identical hosts.
std::string ToText(const std::vector<GpuHost>& hosts);
Json ToJson(const std::vector<GpuHost>& hosts);

}  // namespace dtrun::cli

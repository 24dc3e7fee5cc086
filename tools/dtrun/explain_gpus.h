// What was found of the GPUs of each host before the ranks of a run started, read back from its plan.
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
  std::vector<int> ranks;  // that take them, by local rank; empty: not one for each
};

// The hosts whose backend has said something of pairs.
std::vector<GpuHost> ReadGpus(const Json& plan);

// A line where all pairs agree, else a table with the reasons; hosts that are alike together.
std::string ToText(const std::vector<GpuHost>& hosts);
Json ToJson(const std::vector<GpuHost>& hosts);

}  // namespace dtrun::cli

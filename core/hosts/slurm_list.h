// Slurm's compressed lists: of nodes, "node[01-03,07],gpu-[a,b][1-2]-ib", and of counts
// per node, "2(x3),1".
//
// Grammar as in Slurm's hostlist.c and srun(1), SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE.
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::hosts {

// Names in order; the last bracket runs fastest; a range keeps the zeros of its lower end.
Result<std::vector<std::string>> ExpandNodelist(std::string_view text);

// One count per node.
Result<std::vector<int>> ExpandCounts(std::string_view text);
// The inverse: {2, 2, 2, 1} is "2(x3),1".
std::string CompressCounts(const std::vector<int>& counts);

}  // namespace dtrun::hosts

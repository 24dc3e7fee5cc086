// Compressed lists: of hosts, "node[01-03,07],gpu-[a,b][1-2]-ib", as Slurm and Flux write them, and of counts
// per host, "2(x3),1".
//
// Grammar as in Slurm's hostlist.c, srun(1) (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE) and Flux's RFC 29.
// Malformed ones throw sdk::Failure with what is wrong. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrun::schedulers {

// Names in order, none twice; the last bracket runs fastest; a range keeps the zeros of its lower end.
std::vector<std::string> ExpandNodelist(std::string_view text);

// One count per host.
std::vector<int> ExpandCounts(std::string_view text);
// The inverse: {2, 2, 2, 1} is "2(x3),1".
std::string CompressCounts(const std::vector<int>& counts);

}  // namespace dtrun::schedulers

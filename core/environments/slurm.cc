// Slurm: srun(1), "OUTPUT ENVIRONMENT VARIABLES". Does not invent a SLURM_JOB_ID: signal handlers pass it to
// scontrol and scancel. SLURM_LAUNCH_NODE_IPADDR may be a login node, so programs should not read it.
#include <fmt/format.h>

#include "core/base/number_list.h"
#include "core/environments/contracts.h"

namespace dtrun::environments {
Contract WriteSlurm(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string tasks = std::to_string(table.world_size());
  const std::string hosts = std::to_string(table.host_count());
  std::string names, ranks_here;
  std::vector<int> sizes;
  for (const TableHost& host : table.hosts) {
    names += (names.empty() ? "" : ",") + host.name;
    sizes.push_back(host.local_size);
  }
  for (int local = 0; local < place.local_size; ++local) {
    ranks_here += fmt::format("{}{}", local == 0 ? "" : ",", rank - place.local_rank + local);
  }
  const std::string tasks_per_node = CountList(sizes);
  Contract out;
  out.set = {
      {"SLURM_PROCID", std::to_string(rank)},
      {"SLURM_NTASKS", tasks},
      {"SLURM_NPROCS", tasks},
      {"SLURM_STEP_NUM_TASKS", tasks},
      {"SLURM_LOCALID", std::to_string(place.local_rank)},
      {"SLURM_GTIDS", ranks_here},
      {"SLURM_TASKS_PER_NODE", tasks_per_node},
      {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
      {"SLURM_NODEID", std::to_string(place.host_index)},
      {"SLURM_NNODES", hosts},
      {"SLURM_JOB_NUM_NODES", hosts},
      {"SLURM_STEP_NUM_NODES", hosts},
      {"SLURM_NODELIST", names},
      {"SLURM_JOB_NODELIST", names},
      {"SLURM_STEP_NODELIST", names},
      {"SLURM_RESTART_COUNT", std::to_string(table.generation)},
  };
  out.fallback = {{"SLURM_JOB_NAME", table.run_id}};
  // Lightning rejects several tasks without it.
  if (std::ranges::all_of(sizes, [&](int size) { return size == sizes[0]; })) {
    out.set["SLURM_NTASKS_PER_NODE"] = std::to_string(sizes[0]);
  }
  return out;
}

}  // namespace dtrun::environments

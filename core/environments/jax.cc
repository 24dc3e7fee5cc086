// JAX: jax/_src/distributed.py and jax/_src/clusters/slurm_cluster.py. initialize() without arguments tries
// to detect one cluster environment after another. Of those that JAX knows, only Slurm's consists of
// variables alone; the coordinator's address is a variable of JAX itself.
#include "core/base/endpoint.h"
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteJax(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  std::string names;
  for (const TableHost& host : table.hosts) names += (names.empty() ? "" : ",") + host.name;
  Contract out;
  out.set = {
      {"JAX_COORDINATOR_ADDRESS", EndpointText(table.master_address, table.master_port)},
      {"SLURM_STEP_NODELIST", names},
      {"SLURM_NTASKS", std::to_string(table.world_size())},
      {"SLURM_PROCID", std::to_string(rank)},
      {"SLURM_LOCALID", std::to_string(place.local_rank)},
  };
  // Required, and must not match a real Slurm job: real job ids are far smaller.
  out.fallback = {{"SLURM_JOB_ID", "4000000000"}};
  return out;
}

}  // namespace dtrun::environments

// PyTorch Lightning: lightning/fabric/plugins/environments/torchelastic.py. The run id makes Lightning prefer
// this environment to Slurm's or MPI's.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteLightning(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out;
  out.set = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(table.world_size())},
      {"LOCAL_RANK", std::to_string(place.local_rank)},
      {"GROUP_RANK", std::to_string(place.host_index)},
      {"NODE_RANK", std::to_string(place.host_index)},
      {"MASTER_ADDR", table.master_address},
      {"MASTER_PORT", table.master_port},
      {"TORCHELASTIC_RUN_ID", table.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
  };
  return out;
}

}  // namespace dtrun::environments

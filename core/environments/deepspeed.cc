// DeepSpeed: deepspeed/launcher/launch.py. CROSS_* number hosts here, unlike Horovod's.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteDeepSpeed(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out;
  out.set = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(table.world_size())},
      {"LOCAL_RANK", std::to_string(place.local_rank)},
      {"LOCAL_SIZE", std::to_string(place.local_size)},
      {"CROSS_RANK", std::to_string(place.host_index)},
      {"CROSS_SIZE", std::to_string(table.host_count())},
      {"MASTER_ADDR", table.master_address},
      {"MASTER_PORT", table.master_port},
  };
  return out;
}

}  // namespace dtrun::environments

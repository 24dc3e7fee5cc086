// MPICH's Hydra: src/pm/hydra/proxy/pmip_cb.c. PMI_FD and PMI_PORT belong to a PMI server.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteMpich(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out;
  out.set = {
      {"PMI_RANK", std::to_string(rank)},
      {"PMI_SIZE", std::to_string(table.world_size())},
      {"MPI_LOCALRANKID", std::to_string(place.local_rank)},
      {"MPI_LOCALNRANKS", std::to_string(place.local_size)},
      {"PMI_HOSTNAME", table.hosts[static_cast<std::size_t>(place.host_index)].name},
  };
  return out;
}

}  // namespace dtrun::environments

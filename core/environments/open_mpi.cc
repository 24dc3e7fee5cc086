// Open MPI: the rank variables of OpenPMIx's pmdl_ompi.c and Open MPI's environment-var.rst. Left out: the
// description of mpirun's own command, and PMIX_*, which belong to a server.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteOpenMpi(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string size = std::to_string(table.world_size());
  Contract out;
  out.set = {
      {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
      {"OMPI_COMM_WORLD_SIZE", size},
      {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(place.local_rank)},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(place.local_size)},
      // The rank among all processes of this host, not the number of the host.
      {"OMPI_COMM_WORLD_NODE_RANK", std::to_string(place.local_rank)},
      {"OMPI_WORLD_SIZE", size},
      {"OMPI_WORLD_LOCAL_SIZE", std::to_string(place.local_size)},
      {"OMPI_UNIVERSE_SIZE", size},
      {"OMPI_NUM_APP_CTX", "1"},
      {"OMPI_APP_CTX_NUM_PROCS", size},
      {"OMPI_FIRST_RANKS", "0"},
      {"OMPI_MCA_num_procs", size},
      {"OMPI_MCA_num_restarts", std::to_string(table.generation)},
  };
  return out;
}

}  // namespace dtrun::environments

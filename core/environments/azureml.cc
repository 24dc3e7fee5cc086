// Azure ML: the variables of its MPI jobs and of its PyTorch jobs, which are consistent. Scripts that derive
// the master from an MPI job use port 6105 on several hosts, unless MASTER_PORT is set, and always 54965 on
// one host. DeepSpeed's comm.py copies that recipe.
#include "core/base/endpoint.h"
#include "core/environments/contracts.h"

namespace dtrun::environments {

int AzureMlPort(int hosts) { return hosts > 1 ? 6105 : 54965; }

Contract WriteAzureMl(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out = WriteOpenMpi(table, rank);
  out.set["AZ_BATCH_MASTER_NODE"] = EndpointText(table.master_address, table.master_port);
  out.set["AZ_BATCHAI_MPI_MASTER_NODE"] = table.master_address;
  out.set["MASTER_ADDR"] = table.master_address;
  out.set["MASTER_PORT"] = table.master_port;
  out.set["NODE_RANK"] = std::to_string(place.host_index);
  out.set["WORLD_SIZE"] = std::to_string(table.world_size());
  out.set["RANK"] = std::to_string(rank);
  out.set["LOCAL_RANK"] = std::to_string(place.local_rank);
  // DeepSpeed on Azure reads it, and fails if it is unset.
  out.fallback["NCCL_SOCKET_IFNAME"] = "^docker0,lo";
  return out;
}

}  // namespace dtrun::environments

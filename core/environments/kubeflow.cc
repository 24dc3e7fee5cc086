// Kubeflow: PyTorchJob v1, pkg/controller.v1/pytorch/envvar.go, and TrainJob v2, plugins/torch/torch.go. Both
// configure torchrun in a pod; a host corresponds to a pod.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteKubeflowV2(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out;
  out.set = {
      {"PET_NNODES", std::to_string(table.host_count())},
      {"PET_NPROC_PER_NODE", std::to_string(place.local_size)},
      {"PET_NODE_RANK", std::to_string(place.host_index)},
      {"PET_MASTER_ADDR", table.master_address},
      {"PET_MASTER_PORT", table.master_port},
  };
  return out;
}

// RANK is the pod's number, but WORLD_SIZE counts processes.
Contract WriteKubeflowV1(const RankTable& table, int rank) {
  Contract out = WriteKubeflowV2(table, rank);
  out.set["RANK"] = out.set["PET_NODE_RANK"];
  out.set["WORLD_SIZE"] = std::to_string(table.world_size());
  out.set["MASTER_ADDR"] = table.master_address;
  out.set["MASTER_PORT"] = table.master_port;
  out.fallback["PYTHONUNBUFFERED"] = "1";
  return out;
}

}  // namespace dtrun::environments

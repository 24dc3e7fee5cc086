// Spark's TorchDistributor: pyspark/ml/torch/distributor.py. A task is a partition with one process and
// counts as a node: LOCAL_RANK is 0 everywhere.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteSpark(const RankTable& table, int rank) {
  Contract out;
  out.set = {
      {"RANK", std::to_string(rank)},
      {"NODE_RANK", std::to_string(rank)},
      {"LOCAL_RANK", "0"},
      {"WORLD_SIZE", std::to_string(table.world_size())},
      {"MASTER_ADDR", table.master_address},
      {"MASTER_PORT", table.master_port},
  };
  return out;
}

}  // namespace dtrun::environments

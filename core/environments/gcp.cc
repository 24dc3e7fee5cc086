// GCP AI Platform, PyTorch: the numbers are those of the host. A launcher on each host is expected to derive
// ranks from them.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteGcp(const RankTable& table, int rank) {
  Contract out;
  out.set = {
      {"RANK", std::to_string(PlaceOf(table, rank).host_index)},
      {"WORLD_SIZE", std::to_string(table.host_count())},
      {"MASTER_ADDR", table.master_address},
      {"MASTER_PORT", table.master_port},
  };
  return out;
}

}  // namespace dtrun::environments

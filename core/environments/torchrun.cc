// torchrun: torch/distributed/elastic/agent/server/local_elastic_agent.py.
#include <algorithm>

#include "core/environments/contracts.h"

namespace dtrun::environments {
namespace {

// A job without roles uses torchrun's default role.
const std::string& RoleOf(const RankTable& table, int rank) {
  static const std::string kDefault = "default";
  return table.roles.empty() ? kDefault : table.roles[static_cast<std::size_t>(rank)];
}

}  // namespace

Contract WriteTorchrun(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string& role = RoleOf(table, rank);
  int role_rank = 0, role_size = 0;
  for (int other = 0; other < table.world_size(); ++other) {
    if (RoleOf(table, other) != role) continue;
    if (other < rank) ++role_rank;
    ++role_size;
  }
  Contract out;
  out.set = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(table.world_size())},
      {"LOCAL_RANK", std::to_string(place.local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(place.local_size)},
      {"GROUP_RANK", std::to_string(place.host_index)},
      {"GROUP_WORLD_SIZE", std::to_string(table.host_count())},
      {"ROLE_NAME", role},
      {"ROLE_RANK", std::to_string(role_rank)},
      {"ROLE_WORLD_SIZE", std::to_string(role_size)},
      {"MASTER_ADDR", table.master_address},
      {"MASTER_PORT", table.master_port},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(table.generation)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(table.max_restarts)},
      {"TORCHELASTIC_RUN_ID", table.run_id},
      // dtrun serves no TCPStore: rank 0 opens it.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", table.run_dir + "/rank-" + std::to_string(rank) + ".error.json"},
  };
  out.fallback = {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
  if (place.local_size > 1) out.fallback["OMP_NUM_THREADS"] = "1";
  return out;
}

}  // namespace dtrun::environments

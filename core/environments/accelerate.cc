// Hugging Face accelerate: accelerate/utils/launch.py. Its other ACCELERATE_* variables are user choices with
// defaults.
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteAccelerate(const RankTable& table, int rank) {
  Contract out = WriteTorchrun(table, rank);
  out.fallback["ACCELERATE_MIXED_PRECISION"] = "no";
  // Without it Accelerator() on CPUs creates no process group: every rank trains alone and succeeds.
  const auto host = static_cast<std::size_t>(PlaceOf(table, rank).host_index);
  if (!table.hosts[host].sees_gpus) out.fallback["ACCELERATE_USE_CPU"] = "true";
  return out;
}

}  // namespace dtrun::environments

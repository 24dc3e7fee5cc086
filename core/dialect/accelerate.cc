// Hugging Face accelerate: accelerate/utils/launch.py. Its other ACCELERATE_* variables
// are choices of the user's that have defaults when unset.
#include "core/dialect/contracts.h"

namespace dtrun::dialect {

Contract WriteAccelerate(const RankTable& table, int rank) {
  Contract out = WriteTorchrun(table, rank);
  out.fallback["ACCELERATE_MIXED_PRECISION"] = "no";
  return out;
}

}  // namespace dtrun::dialect

// Assigns TensorFlow cluster roles to ranks: job.roles. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::environments {

// Roles by rank, from counts such as {"chief": "1", "worker": "2", "ps": "1"}, in the order chief, worker,
// ps, evaluator. No counts: no roles. The counts must add up to `ranks`.
Result<std::vector<std::string>> AssignRoles(const std::map<std::string, std::string>& counts, int ranks);

}  // namespace dtrun::environments

// The config's [watch] as the agent takes it. Main thread.
#pragma once

#include "core/config/settings.h"
#include "core/job/stall_watch.h"

namespace dtrun::launch {

// Errors name the place of a limit that is no duration.
Result<job::StallPolicy> StallPolicyOf(const config::Settings& settings);

}  // namespace dtrun::launch

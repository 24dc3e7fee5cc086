// The config's [watch] as the agent takes it. Main thread.
#pragma once

#include "core/agent/stall_watch.h"
#include "core/config/settings.h"

namespace dtrun::cli {

// Errors name the place of a limit that is no duration.
Result<agent::StallPolicy> StallPolicyOf(const config::Settings& settings);

}  // namespace dtrun::cli

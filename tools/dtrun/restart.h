// The config's [restart] as the agent takes it. Main thread.
#pragma once

#include "core/agent/restart.h"
#include "core/config/settings.h"

namespace dtrun::cli {

// Errors name the place of a class that does not exist.
Result<agent::RestartPolicy> RestartPolicyOf(const config::Settings& settings);

}  // namespace dtrun::cli

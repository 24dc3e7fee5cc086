// The config's [restart] as the agent takes it. Main thread.
#pragma once

#include "core/config/settings.h"
#include "core/job/restart.h"

namespace dtrun::launch {

// Errors name the place of a class that does not exist.
Result<job::RestartPolicy> RestartPolicyOf(const config::Settings& settings);

}  // namespace dtrun::launch

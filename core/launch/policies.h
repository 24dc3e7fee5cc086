// The config's [restart] and [watch] as the root takes them. Pure; any thread.
#pragma once

#include "core/config/settings.h"
#include "core/job/restart.h"
#include "core/job/stall_watch.h"

namespace dtrun::launch {

// Errors name the place of a class that does not exist.
Result<job::RestartPolicy> RestartPolicyOf(const config::Settings& settings);

// Errors name the place of a limit that is no duration.
Result<job::StallPolicy> StallPolicyOf(const config::Settings& settings);

}  // namespace dtrun::launch

// The config's [cluster] as the root and the agents of a job take it. Main thread.
#pragma once

#include <optional>

#include "core/agent/cluster.h"
#include "core/config/settings.h"
#include "core/plan/plan.h"

namespace dtrun::cli {

// How the hosts of the plan come together; nothing when the job is this machine's alone.
Result<std::optional<agent::Cluster>> ClusterOf(const config::Settings& settings, const plan::Plan& plan);

// Set when this process is to be the agent of a host whose root somebody else has started:
// cluster.connect is "manual" and this host is not host 0.
Result<std::optional<agent::Summons>> SummonsOf(const config::Settings& settings);

}  // namespace dtrun::cli

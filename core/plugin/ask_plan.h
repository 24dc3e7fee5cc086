// Asks a launcher that is loaded in this process for the processes of a job: the probe's side.
//
// Main thread of the probe.
#pragma once

#include "core/plugin/launch_job.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// init, plan, shutdown. A process that no system could start is an error that names the launcher.
Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job);

}  // namespace dtrun::plugin

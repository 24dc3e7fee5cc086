// Asks a launcher that is loaded in this process for the processes of a job: the probe's side.
//
// Main thread of the probe.
#pragma once

#include <functional>

#include "core/plugin/launch_job.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// Takes the first processes of a large job.
using SendPart = std::function<Status(const LaunchPlan& part)>;

// init, plan, shutdown. Returns what follows the parts, or an error that counts for those too. A process that no
// system could start is an error that names the launcher. Throws std::bad_alloc.
Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job,
                           const SendPart& send);

}  // namespace dtrun::plugin

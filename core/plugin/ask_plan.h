// Queries a launcher that is loaded in this process for the processes of a job; runs in the probe.
//
// Main thread of the probe.
#pragma once

#include <functional>

#include "core/plugin/launch_job.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// Receives the first processes of a large job.
using SendPart = std::function<Status(const LaunchPlan& part)>;

// Calls init, plan, shutdown. Returns the processes after the last part, or an error that also invalidates
// the parts. A process that no system could start is an error that names the launcher. Throws std::bad_alloc.
Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job,
                           const SendPart& send);

}  // namespace dtrun::plugin

// Queries a launcher that is loaded in this process: for hosts, for the commands that start dtrun on them,
// and for the processes of a job; runs in the probe.
//
// Main thread of the probe.
#pragma once

#include <functional>

#include "core/hosts/launchers.h"
#include "core/plugin/launch_job.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// Calls init, find_hosts, shutdown. DTRUN_NOT_FOUND: its platform is absent. An invalid allocation is an
// error that names the launcher.
Result<hosts::Allocation> AskHosts(const Plugin& launcher, const dtrun_options& options,
                                   const hosts::Environment& environment);

// Calls init, connect, shutdown. Exactly one of the commands starts each host.
Result<std::vector<hosts::StartCommand>> AskConnect(const Plugin& launcher, const dtrun_options& options,
                                                    const ConnectRequest& request);

// Receives the first processes of a large job.
using SendPart = std::function<Status(const LaunchPlan& part)>;

// Calls init, plan, shutdown. Returns the processes after the last part, or an error that also invalidates
// the parts. A process that no system could start is an error that names the launcher. Throws std::bad_alloc.
Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job,
                           const SendPart& send);

}  // namespace dtrun::plugin

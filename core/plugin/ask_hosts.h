// Queries a launcher that is loaded in this process for hosts, and for the commands that start dtrun on them;
// runs in the probe.
//
// Main thread of the probe.
#pragma once

#include "core/hosts/launchers.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// Calls init, find_hosts, shutdown. DTRUN_NOT_FOUND: its platform is absent. An invalid allocation is an
// error that names the launcher.
Result<hosts::Allocation> AskHosts(const Plugin& launcher, const dtrun_options& options,
                                   const hosts::Environment& environment);

// Calls init, connect, shutdown. Exactly one of the commands starts each host.
Result<std::vector<hosts::StartCommand>> AskConnect(const Plugin& launcher, const dtrun_options& options,
                                                    const ConnectRequest& request);

}  // namespace dtrun::plugin

// Asks a launcher that is loaded in this process for hosts, and for the commands that start dtrun on them:
// the probe's side.
//
// Main thread of the probe.
#pragma once

#include "core/hosts/launchers.h"
#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// init, find_hosts, shutdown. DTRUN_NOT_FOUND: its platform is not there. An allocation that no job could
// have is an error that names the launcher.
Result<hosts::Allocation> AskHosts(const Plugin& launcher, const dtrun_options& options,
                                   const hosts::Environment& environment);

// init, connect, shutdown. Each host is started by exactly one of the commands.
Result<std::vector<hosts::StartCommand>> AskConnect(const Plugin& launcher, const dtrun_options& options,
                                                    const ConnectRequest& request);

}  // namespace dtrun::plugin

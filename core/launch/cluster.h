// The config's [cluster] as the root and the agents of a job take it. Main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/config/settings.h"
#include "core/hosts/launchers.h"
#include "core/launch/cluster_key.h"
#include "core/membership/cluster.h"
#include "core/protocol/join_request.h"

namespace dtrun::launch {

// How the hosts of the job come together; nothing when the job is this machine's alone.
// `rule`: for the key of hosts that somebody else starts, where the user has given none. `launchers`: those
// whose names cluster.connect takes.
Result<std::optional<membership::Cluster>> ClusterOf(const config::Settings& settings,
                                                     const KeyRule& rule = {},
                                                     std::shared_ptr<hosts::Launchers> launchers = nullptr);

// What of [cluster] is wrong on any host. Errors name the place.
Status CheckAddresses(const config::Settings& settings);

// That cluster.remote_shell names a program.
Status CheckRemoteShell(const config::Settings& settings);

// Set when this process is to be the agent of a host whose root somebody else has started:
// cluster.connect is "manual" and this host is not host 0.
Result<std::optional<protocol::JoinRequest>> JoinRequestOf(const config::Settings& settings,
                                                           const KeyRule& rule = {});

// Whether this process is to be the root of hosts without numbers: `host` is this machine, and no other dtrun
// there has the port or is about to. Once true it stays so, and false for others, until this process ends.
bool RootIsHere(const std::string& host, int port);

}  // namespace dtrun::launch

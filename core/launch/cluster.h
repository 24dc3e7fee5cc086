// Converts the config's [cluster] for the root and agents of a job. Main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/spec/job_spec.h"
#include "core/hosts/launchers.h"
#include "core/launch/cluster_key.h"
#include "core/membership/cluster.h"
#include "core/protocol/join_request.h"

namespace dtrun::launch {

// How the hosts of the job connect; nullopt if the job runs on this machine only. `rule`: for the key of
// manually started hosts, if the user has given none. `launchers`: those that cluster.connect may name.
Result<std::optional<membership::Cluster>> ClusterOf(const spec::JobSpec& spec,
                                                     const KeyRule& rule = {},
                                                     std::shared_ptr<hosts::Launchers> launchers = nullptr);

// Checks cluster.root. Errors name the place.
Status CheckAddresses(const spec::JobSpec& spec);

// Checks that cluster.remote_shell names a program.
Status CheckRemoteShell(const spec::JobSpec& spec);

// Set if this process is an agent that joins an existing root: cluster.connect is "manual" and this
// host is not host 0.
Result<std::optional<protocol::JoinRequest>> JoinRequestOf(const spec::JobSpec& spec,
                                                           const KeyRule& rule = {});

// Whether this process becomes the root of hosts without numbers: `host` is this machine, and no other dtrun
// there uses or is about to use the port. Once true it stays true, and false for other processes, until this
// process ends.
bool RootIsHere(const std::string& host, int port);

}  // namespace dtrun::launch

// Converts the config's [cluster] for the root and agents of a job. Main thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hosts/launchers.h"
#include "core/job/restart.h"
#include "core/launch/cluster_key.h"
#include "core/membership/cluster.h"
#include "core/metrics/server.h"
#include "core/observe/stall_watch.h"
#include "core/protocol/hello.h"
#include "core/spec/job_spec.h"

namespace dtrun::launch {

// How the hosts of the job connect; nullopt if the job runs on this machine only. `rule`: for the key of
// manually started hosts, if the user has given none. `launchers`: those that cluster.connect may name.
Result<std::optional<membership::Cluster>> ClusterOf(const spec::JobSpec& spec, const KeyRule& rule = {},
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

// Converts the config's [restart] and [watch] for the root, and its network.interface for this host. Any
// thread.

// Errors name the place of an unknown class.
Result<job::RestartPolicy> RestartPolicyOf(const spec::JobSpec& spec);

// Errors name the place of a limit that is not a duration.
Result<observe::StallPolicy> StallPolicyOf(const spec::JobSpec& spec);
// Without the token.
Result<metrics::Listening> MetricsOf(const spec::JobSpec& spec);
// With it; reads metrics.token_file.
Result<metrics::Listening> MetricsWithToken(const spec::JobSpec& spec);

// Values that are wrong on every host but that a spec cannot reject, each with its place. `spec` may have
// other problems.
std::vector<Error> WrongValues(const spec::JobSpec& spec);

// Checks that this host has the interfaces named for a job on it alone. Does not query other hosts.
Status CheckInterface(const spec::JobSpec& spec);

// The file id (core/plugin/plugin_file.h) that the config pins for a plugin file; empty: any. Of several
// pins, the one that matches the file, or the first.
std::string PinOf(const spec::AnyField& pins, const std::filesystem::path& file);

}  // namespace dtrun::launch

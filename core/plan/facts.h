// Each host's backend facts, and the facts that hold for all hosts.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/plan/build.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// The backend's answer on `host`.
const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host);

// The id of the plugin file on `host`; empty if that host was not queried.
std::string FileIdOn(const Backend& backend, std::size_t host);

// Merges one text per host: a single text if all are equal, else each with its hosts' names.
std::string TellByHost(const std::vector<Host>& hosts, const std::vector<std::string>& texts);

// Gives each host its facts, and the plan the merged facts, with host names where they differ. Facts about
// pairs of devices ("peer 0>1"), "by" and "agree" facts stay with the hosts.
void AddFacts(const Backend& backend, Plan* plan);
// The same for the device-memory backend.
void AddDeviceFacts(const Backend& backend, Plan* plan);

}  // namespace dtrun::plan

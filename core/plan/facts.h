// What the backend says of each host, and what of it is said once for all.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/plan/build.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// The answer for `host`.
const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host);

// Of the plugin file that `host` has answered with; empty when it has not been asked.
std::string FileIdOn(const Backend& backend, std::size_t host);

// A text for all hosts, given one for each: said once, or with their names where they differ.
std::string TellByHost(const std::vector<Host>& hosts, const std::vector<std::string>& texts);

// Gives each host its facts, and the plan those that tell of all: where hosts differ, with their names.
// What a backend says of single pairs of devices ("peer 0>1"), and of what decides or must agree, is left to
// the hosts.
void AddFacts(const Backend& backend, Plan* plan);
// Likewise of the backend of device memory.
void AddDeviceFacts(const Backend& backend, Plan* plan);

}  // namespace dtrun::plan

// network.interface and network.interface_on: what each host may use between hosts.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/network/decision.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

// Their grammar. Errors carry the place.
Status CheckRules(const config::Settings& settings);

// By host. Empty when dtrun shall choose nothing: network.interface is "off", or there is one host
// and nothing was asked for. Checks the grammar and the names of hosts; errors carry the place.
Result<std::vector<NetworkRule>> NetworkRules(const config::Settings& settings,
                                              const std::vector<Host>& hosts);

// What of them a job on one host does not use: a sentence, or nothing.
std::string UnusedInterface(const config::Settings& settings);

// Puts what was decided into the plan: addresses of hosts, a line for the header, the records.
void AddNetwork(const network::Decision& decision, Plan* plan);

}  // namespace dtrun::plan

// network.interface and network.interface_on: the interfaces that each host may use between hosts.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/network/decision.h"
#include "core/plan/plan.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// Checks the grammar of both. Errors carry the place.
Status CheckRules(const spec::JobSpec& spec);

// The rules by host. Empty if dtrun must not choose an interface: network.interface is "off", or
// there is one host and no rule. Checks the grammar and the host names; errors carry the place.
Result<std::vector<NetworkRule>> NetworkRules(const spec::JobSpec& spec, const std::vector<Host>& hosts);

// Reports the rules that a job on one host does not use: a sentence, or nothing.
std::string UnusedInterface(const spec::JobSpec& spec);

// Adds the decision to the plan: addresses of hosts, a line for the header, the records.
void AddNetwork(const network::Decision& decision, Plan* plan);

}  // namespace dtrun::plan

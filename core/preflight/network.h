// The doctor's checks from connectivity checks between hosts (core/network). Pure; any thread.
#pragma once

#include <vector>

#include "core/base/json.h"
#include "core/network/decision.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// A network search, finished or given up.
struct NetworkFinding {
  Result<network::Decision> decision;
  network::Evidence evidence;  // the attempts; without hosts if there were none
};

// The chosen network, the others, and, if something failed, which hosts reach each other.
std::vector<Check> CheckNetwork(const NetworkFinding& finding);

// Every direction between two hosts: "from", "to", "interfaces", "failed".
Json LinksToJson(const network::Evidence& evidence);

}  // namespace dtrun::preflight

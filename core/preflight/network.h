// What connectivity checks between hosts (core/network) says to a doctor. Pure; any thread.
#pragma once

#include <vector>

#include "core/base/json.h"
#include "core/network/decision.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// The search for a network, over or given up.
struct NetworkFinding {
  Result<network::Decision> decision;
  network::Evidence evidence;  // what was tried; of no hosts when nothing was
};

// The choice, what was not chosen, and who reaches whom where something failed.
std::vector<Check> CheckNetwork(const NetworkFinding& finding);

// Every direction between two hosts: "from", "to", "interfaces", "failed".
Json LinksToJson(const network::Evidence& evidence);

}  // namespace dtrun::preflight

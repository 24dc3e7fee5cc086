// What the proof of networks between hosts (core/net) says to a doctor. Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/examination/examination.h"
#include "core/net/decision.h"

namespace dtrun::examination {

// The search for a network, over or given up.
struct NetworkFinding {
  Result<net::Decision> decision;
  net::Evidence evidence;  // what was tried; of no hosts when nothing was
};

// The choice, what was not chosen, and who reaches whom where something failed.
std::vector<Check> CheckNetwork(const NetworkFinding& finding);

// Every direction between two hosts: "from", "to", "interfaces", "failed".
nlohmann::ordered_json LinksToJson(const net::Evidence& evidence);

}  // namespace dtrun::examination

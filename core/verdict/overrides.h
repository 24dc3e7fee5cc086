// Detects rendezvous variables (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE) that a program has changed from
// the values that dtrun set.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/process_variables.h"
#include "core/verdict/facts.h"

namespace dtrun::verdict {

// The rendezvous variables in the environment that dtrun set for a rank.
std::map<std::string, std::string> RendezvousVariables(const ProcessVariables& environment);

// The variables that no longer have their `given` value.
std::vector<Override> OverridesOf(int rank, const std::map<std::string, std::string>& given,
                                  const std::map<std::string, std::string>& now);

// "MASTER_PORT to 12355, where dtrun set 29777; RANK to 0, where dtrun set 1"
std::string OverridesText(const std::vector<Override>& overrides);

}  // namespace dtrun::verdict

// Variables by which ranks find each other (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), where a program has
// set them to something else than dtrun did.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/process_variables.h"
#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Of what dtrun has set for a rank those that ranks find each other by.
std::map<std::string, std::string> RendezvousVariables(const ProcessVariables& environment);

// Those that are not `given` any more.
std::vector<Override> OverridesOf(int rank, const std::map<std::string, std::string>& given,
                                  const std::map<std::string, std::string>& now);

// "MASTER_PORT to 12355, where dtrun set 29777; RANK to 0, where dtrun set 1"
std::string OverridesText(const std::vector<Override>& overrides);

}  // namespace dtrun::verdict

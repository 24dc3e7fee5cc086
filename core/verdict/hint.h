// What to do next about the way in which a rank ended, when nothing that it printed says more.
//
// Pure; any thread.
#pragma once

#include <string>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// The usual cause of such an exit, and where to look; may be empty. REQUIRES: `rank` has ended.
std::string Hint(const RankFacts& rank);

}  // namespace dtrun::verdict

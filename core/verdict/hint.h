// Advice for the way a rank ended, used when its output gives no better one.
//
// Pure; any thread.
#pragma once

#include <string>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// The usual cause of such an exit and where to look; may be empty. REQUIRES: `rank` has ended.
std::string Hint(const RankFacts& rank);

}  // namespace dtrun::verdict

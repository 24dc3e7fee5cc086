// Which rank aborted a communicator (dtrun_comm_abort), and so failed the calls of others.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Its report that it aborted a communicator, with the arguments "communicator" and "reason"; null: it has
// none.
const PeerReport* AbortOf(const RankFacts& rank);
// Whether it reports that a call failed because another rank aborted its communicator.
bool FailedByAbort(const RankFacts& rank);
// The rank, if any, that aborted the communicator in which `rank` failed, or that it lost by that, and has
// not ended by itself.
std::optional<std::size_t> AborterOf(const Facts& facts, const RankFacts& rank);

}  // namespace dtrun::verdict

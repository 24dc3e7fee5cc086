// Detects ranks that waited for each other in vain, where no rank is more to blame than the others.
//
// Pure; any thread.
#pragma once

#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Whether every rank that `first` may have missed waited for others until a timeout, at different places:
// their calls do not match, and no evidence shows which ones are wrong. `first`: index of the rank that
// failed first.
bool WaitedApart(const Facts& facts, std::size_t first);

// A cycle of ranks, in order, in which each waited for the next and the last for the first, according to
// their reports: all in a recv, all in a send, or in collectives of different communicators. This is a
// deadlock whatever the timing. Empty: none.
std::vector<int> WaitedForEachOther(const Facts& facts, std::size_t first);

// Whether all ranks wait in collectives, but not in the same one, so that none can complete. Two calls of the
// same collective may match wherever they are in the program; so may a send and a recv.
bool WaitInDifferentCollectives(const std::vector<RankDoing>& ranks);

// The ranks that waited for a file lock that rank `index` held.
std::vector<int> LockedOutBy(const Facts& facts, std::size_t index);

}  // namespace dtrun::verdict

// How ranks waited for each other in vain, where nobody is to blame more than the others.
//
// Pure; any thread.
#pragma once

#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Whether every rank that `first` may have missed waited for others until a limit, and not all at one place:
// their calls do not fit together, and nothing says whose are wrong. `first`: index of the rank that failed
// first.
bool WaitedApart(const Facts& facts, std::size_t first);

// The ranks of which each waited for the next and the last for the first, all in a recv, all in a send, or in
// collectives of different communicators, by what they reported; in order. Whoever came first, none of them
// could have gone on. Empty: there are none.
std::vector<int> WaitedForEachOther(const Facts& facts, std::size_t first);

// Whether all of them wait in collectives, and not all in the same one: nobody will ever come. Two calls of
// one collective may belong together, wherever they stand; so may a send and a recv.
bool WaitInDifferentCollectives(const std::vector<RankDoing>& ranks);

// The ranks that waited for the lock of a file which that one held.
std::vector<int> LockedOutBy(const Facts& facts, std::size_t index);

}  // namespace dtrun::verdict

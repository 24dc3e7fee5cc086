// A suspicion, and what ranks have in common, in words for the verdict.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/suspect.h"

namespace dtrun::verdict {

// "rank 1 was in time.sleep at train.py:40; the others waited in all_reduce at train.py:42". REQUIRES: a
// suspicion of some kind.
std::string SuspicionText(const Facts& facts, const Suspicion& suspicion);

// The ranks that had ended with code 0, where these are suspected.
std::vector<int> RanksThatLeft(const Facts& facts, const Suspicion& suspicion);

// "stood still", in a word or two: null for kNone.
const char* SuspicionName(Suspicion::Kind kind);

// Where a rank was; of a process that has started several, where these were. Empty: not known.
std::string PlaceText(const RankFacts& rank);

// PlacesOf in words. Of a rank that shows no place, such as one that ends, that of the traceback that it
// printed; without one it is left out. Empty when nothing is known of any.
std::string KnownPlacesText(const Facts& facts);

// What to do about it; may be empty.
std::string SuspicionHint(Suspicion::Kind kind);

// What is said of ranks that waited apart, or for each other: "the ranks waited in different calls". `first`:
// as in WaitedApart.
std::string ApartText(const Facts& facts, std::size_t first);
std::string ApartHint(const Facts& facts, std::size_t first);

inline constexpr char kComparePlaces[] =
    "compare these places: every rank has to call the same collectives, in the same order";

// "rank 1 set MASTER_PORT to 12355, where dtrun set 29777"; of all ranks; empty when none has set any.
std::string OverridesText(const Facts& facts);

// "  all 4 ranks failed the same way: FileNotFoundError: ...", a line (without the error where none is known
// as one); empty when they did not. `index`: of the rank that failed first.
std::string AlikeText(const Facts& facts, std::size_t index);

}  // namespace dtrun::verdict

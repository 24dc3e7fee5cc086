// Formats suspicions, and what ranks have in common, for the verdict.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/suspect.h"

namespace dtrun::verdict {

// "rank 1 was in time.sleep at train.py:40; the others waited in all_reduce at train.py:42". REQUIRES: not
// kNone.
std::string SuspicionText(const Facts& facts, const Suspicion& suspicion);

// The ranks that had exited with code 0, if these are the suspects.
std::vector<int> RanksThatLeft(const Facts& facts, const Suspicion& suspicion);

// A word or two, such as "stood still"; null for kNone.
const char* SuspicionName(Suspicion::Kind kind);

// Where the rank was; for a process that started several ranks, where these were. Empty: unknown.
std::string PlaceText(const RankFacts& rank);

// PlacesOf as text. For a rank without a place, such as one that is exiting, uses the traceback that it
// printed, or leaves the rank out. Empty if no place is known.
std::string KnownPlacesText(const Facts& facts);

// What to do about it; may be empty.
std::string SuspicionHint(Suspicion::Kind kind);

// Describes ranks that waited apart or for each other: "the ranks waited in different calls". `first`: as in
// WaitedApart.
std::string ApartText(const Facts& facts, std::size_t first);
std::string ApartHint(const Facts& facts, std::size_t first);

inline constexpr char kComparePlaces[] =
    "compare these places: every rank has to call the same collectives, in the same order";

// "rank 1 set MASTER_PORT to 12355, where dtrun set 29777"; covers all ranks; empty if none set any.
std::string OverridesText(const Facts& facts);

// A line "  all 4 ranks failed the same way: FileNotFoundError: ...", without the error if it is not a known
// one. Empty if the ranks failed differently. `index`: the rank that failed first.
std::string AlikeText(const Facts& facts, std::size_t index);

}  // namespace dtrun::verdict

// The parts of a verdict's text: how ranks ended, what is suspected, what happened around the failure.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict/cause.h"

namespace dtrun::verdict {

// "exited with code 3", "was killed by signal 9 (SIGKILL)"
std::string EndingText(const process::Ending& ending);

// Appends the ranks that live in the process.
void AddRanks(const RankFacts& process, std::vector<int>* to);

bool OnLostHost(const Facts& facts, const RankFacts& rank);

// Clauses about other ranks relative to a failure at `at`; empty if there are none. Ranks that had already
// succeeded:
std::string Before(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::vector<int>& told);
// Ranks that succeeded later although dtrun had sent them a signal, whether or not they received it:
std::string Meanwhile(const Facts& facts, std::chrono::nanoseconds at);
// Ranks that succeeded later, regardless of the others, except those in `told`:
std::string Beside(const Facts& facts, std::chrono::nanoseconds at, const std::vector<int>& told);
// Ranks that failed later by themselves and blamed no peer, so that their reason is unknown. Leaves out
// `cause` (null if the cause is no rank) and the ranks in `told`. "rank 0 exited with code 1 0.01 s later".
std::string AlsoFailed(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                       const std::vector<int>& told = {});
// All other unsuccessful ranks, with the same exceptions: "ranks 2-5 were stopped by dtrun".
std::string Consequences(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                         const std::vector<int>& told = {});

// How the ranks ended when the run was interrupted.
std::string Endings(const Facts& facts);

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
std::string SuspicionHint(const Facts& facts, Suspicion::Kind kind);

// Describes ranks that waited apart or for each other: "the ranks waited in different calls: rank 0 in recv
// at p2p.py:3; rank 1 in barrier at p2p.py:5". `first`: as in WaitedApart.
std::string ApartText(const Facts& facts, std::size_t first);
std::string ApartHint(const Facts& facts, std::size_t first);

inline constexpr char kComparePlaces[] =
    "compare these places: every rank has to call the same collectives, in the same order";

// "rank 1 set MASTER_PORT to 12355, where dtrun set 29777"; covers all ranks; empty if none set any.
std::string OverridesText(const Facts& facts);

// A line "  all 4 ranks failed the same way: FileNotFoundError: ...", without the error if there is none
// or `said` contains it. Empty if the ranks failed differently. `index`: the rank that failed first.
std::string AlikeText(const Facts& facts, std::size_t index, std::string_view said);

// "dtrun: job 'mnist' failed after 3.2 s", the beginning of every failure verdict.
std::string Failed(const Facts& facts, std::chrono::nanoseconds at);

// The last output of the rank, or that it printed nothing, or that it is not recorded.
std::string Tail(const RankFacts& rank, const std::string& logs);

// What happened before and after, and where to read more. `cause`: null if no rank is it; `told`: ranks that
// the verdict has named.
std::string Around(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::string& hint, ExitClass exit_class, const std::vector<int>& told = {});

// Where the stacks are; empty: there are none.
std::string StacksText(const Facts& facts);

// The whole verdict. REQUIRES: `why` is of kind kRank.
std::string RankText(const Facts& facts, const Cause& why);

}  // namespace dtrun::verdict

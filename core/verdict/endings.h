// Describes how ranks ended: one rank, or the ranks around the first failure.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// "exited with code 3", "was killed by signal 9 (SIGKILL)"
std::string EndingText(const process::Ending& ending);

// Appends the ranks that live in the process.
void AddRanks(const RankFacts& process, std::vector<int>* to);

bool OnLostHost(const Facts& facts, const RankFacts& rank);

// Clauses about other ranks relative to a failure at `at`; empty if there are none. Ranks that had already
// succeeded:
std::string Before(const Facts& facts, std::chrono::nanoseconds at);
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

}  // namespace dtrun::verdict

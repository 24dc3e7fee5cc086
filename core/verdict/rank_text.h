// The parts of a verdict about a rank, shared by the verdicts of jobs that no rank ended.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/verdict/cause.h"

namespace dtrun::verdict {

// "dtrun: job 'mnist' failed after 3.2 s", the beginning of every failure verdict.
std::string Failed(const Facts& facts, std::chrono::nanoseconds at);

// The last output of the rank, or that it printed nothing.
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

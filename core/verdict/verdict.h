// How a run ended, in three forms: exit code, text for people, JSON for programs.
//
// Pure functions of the facts; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "core/verdict/facts.h"
#include "core/verdict/history.h"

namespace dtrun::verdict {

// Last lines of a rank's output that a verdict repeats.
inline constexpr std::size_t kTailLines = 10;

// 0 when all ranks succeeded; the code of the rank that failed first (core/verdict/cause.h),
// 128 + signal for a signal; 128 + signal after an interrupt; 1 when a host was lost.
int ExitCode(const Facts& facts);

// Ends in a newline. One line for success; a block that names the first cause otherwise.
std::string VerdictText(const Facts& facts);

// The content of verdict.json: the last generation in full, the others in short.
// REQUIRES: not empty.
std::string VerdictJson(const History& history);

// The same file when nothing ran.
std::string NotStartedJson(const std::string& job, const std::string& error);
// And when the agent, which would know more, was killed.
std::string AgentKilledJson(const std::string& job, int signal);

// "rank 3", "ranks 2-5, 7". REQUIRES: ascending, not empty.
std::string FoldRanks(const std::vector<int>& ranks);

// "0.01 s", "3.2 s", "2 min 5 s", "3 h 12 min".
std::string FormatElapsed(std::chrono::nanoseconds time);

}  // namespace dtrun::verdict

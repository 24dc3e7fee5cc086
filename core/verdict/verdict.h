// The result of a run in three forms: exit code, text for people, JSON for programs.
//
// Pure functions of the facts; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/verdict/facts.h"
#include "core/verdict/story.h"

namespace dtrun::verdict {

// Number of last output lines of a rank that a verdict quotes.
inline constexpr std::size_t kTailLines = 10;

// 0 if all ranks succeeded; else the code of the rank that failed first (core/verdict/cause.h), or 128 + its
// signal. 128 + signal after an interrupt; 1 if a host was lost.
int ExitCode(const Facts& facts);

// Part of VerdictText if the record of the run has no end.
inline constexpr char kOpenEnd[] = " is running, or dtrun was killed, ";

// "rank 1 made the others wait 84 % of the time (120 looks), mostly in time.sleep at train.py:6; its
// processor was busy with pid 4711 (yes)"
std::string StragglerText(const Straggler& straggler, bool goes_on = false);

// One line for success; otherwise a block that names the first cause. A last line names the straggler, if
// there is one. Ends in a newline.
std::string VerdictText(const Facts& facts);

GenerationSummary Summarise(const Facts& facts);
// The content of verdict.json: the last generation in full, earlier ones as summaries.
std::string VerdictJson(const Facts& facts, const fact::Earlier& earlier = {},
                        std::uint64_t lines_not_shown = 0);
inline std::string VerdictJson(const Story& story) {
  return VerdictJson(story.facts(), story.earlier(), story.lines_not_shown());
}

// verdict.json for a job that never started. The class is kRendezvous if hosts did not join in time
// (DTRUN_TIMEOUT), kNetwork if one was lost (DTRUN_REMOTE_FAILURE), else kUserError.
std::string NotStartedJson(const std::string& job, const Error& error);
// verdict.json if the agent was killed, so that its facts are lost.
std::string AgentKilledJson(const std::string& job, int signal);

// "rank 3", "ranks 2-5, 7". REQUIRES: ascending, not empty.
std::string FoldRanks(const std::vector<int>& ranks);

// "0.01 s", "3.2 s", "2 min 5 s", "3 h 12 min".
std::string FormatElapsed(std::chrono::nanoseconds time);

}  // namespace dtrun::verdict

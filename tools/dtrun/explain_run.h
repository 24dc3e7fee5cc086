// A run directory, read back: what the job used, and why, as far as it was recorded.
//
// Works on a job that has ended and on one that runs. Reads files; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/failures/log.h"
#include "tools/dtrun/explain_choices.h"
#include "tools/dtrun/explain_gpus.h"

namespace dtrun::cli {

// What a rank's logs say that is known.
struct RankFinding {
  int rank = 0;
  failures::LogFinding known;
};

struct RunStory {
  std::string job;
  std::string chosen;  // the run directory, where the user has not named it: the newest one
  std::string state;  // "failed after 3.2 s, exit code 1 (user-error)", "running, or ended without a verdict"
  std::string verdict;  // what dtrun printed of a failure, the blamed rank and its place; empty: none
  std::vector<Choice> choices;
  std::vector<GpuHost> gpus;          // that were tried
  std::string network;                // the table of network.txt: each interface, and why; empty: one host
  std::vector<RankFinding> findings;  // by rank
};

// The files of known failures (failures.path) that the job of a run directory used; none when that is not
// recorded.
std::vector<std::filesystem::path> OwnFailuresOf(const std::filesystem::path& folder);

// Errors name the file that is missing or unreadable.
Result<RunStory> ReadRun(const std::filesystem::path& folder);

std::string ToText(const RunStory& story);
Json ToJson(const RunStory& story);

}  // namespace dtrun::cli

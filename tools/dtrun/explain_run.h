// Reads a run directory: what the job used and why, as far as it was recorded.
//
// Works for finished and running jobs. Reads files; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/failures/finding.h"
#include "tools/dtrun/explain_choices.h"
#include "tools/dtrun/explain_gpus.h"

namespace dtrun::cli {

// A known failure in a rank's logs.
struct RankFinding {
  int rank = 0;
  failures::LogFinding known;
};

struct RunStory {
  std::string job;
  std::string chosen;  // the run directory, if dtrun chose the newest one rather than the user
  std::string state;  // "failed after 3.2 s, exit code 1 (user-error)", "running, or ended without a verdict"
  std::string verdict;  // the failure as dtrun printed it, with the blamed rank and its place; empty: none
  std::vector<Choice> choices;
  std::vector<GpuHost> gpus;  // checked GPUs
  std::string network;        // the table from network.txt: each interface and the reason; empty: one host
  std::vector<RankFinding> findings;  // by rank
};

// The files of known failures (failures.path) that the run's job used; none if not recorded.
std::vector<std::filesystem::path> OwnFailuresOf(const std::filesystem::path& folder);

// Errors name the file that is missing or unreadable.
Result<RunStory> ReadRun(const std::filesystem::path& folder);

std::string ToText(const RunStory& story);
Json ToJson(const RunStory& story);

}  // namespace dtrun::cli

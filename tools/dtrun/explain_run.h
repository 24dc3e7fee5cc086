// Reads a run directory: what the job used and why, as far as it was recorded.
//
// Works for finished and running jobs. Reads files, and asks a running job; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/control/messages.h"
#include "core/failures/finding.h"
#include "core/preflight/gpu_pairs.h"

namespace dtrun::cli {

// One choice.
struct Choice {
  std::string topic;  // "interface"
  std::string value;  // empty: not recorded
  std::string reason;
};

// The contents of the run directory.
struct Records {
  Json plan, config;
  std::optional<Json> verdict;
  std::optional<Json> network;  // with several hosts only
  bool none_joined = false;     // without a verdict: no rank has reached dtrun_init so far
};

// The text at `path` ("/backend/name"); empty if absent.
std::string TextAt(const Json& json, const char* path);

// Ranks, backend, library, transport, paths between ranks, interface, algorithm, GPU peer access, notes.
std::vector<Choice> ChoicesOf(const Records& records);

// The GPU checks of each host before the ranks of a run started, read from its plan.
struct GpuHost {
  std::string name;
  preflight::GpuPairs gpus;
  std::vector<int> ranks;  // ranks that use these GPUs, by local rank; empty: not one rank per GPU
};

// The hosts with a backend that reported on pairs of GPUs.
std::vector<GpuHost> ReadGpus(const Json& plan);

// One line if all pairs have the same result, else a table with the reasons. Groups identical hosts.
std::string ToText(const std::vector<GpuHost>& hosts);
Json ToJson(const std::vector<GpuHost>& hosts);

// What a job that runs tells: where its ranks are, and which one the others wait for.
struct LiveLook {
  control::Answer answer;
  std::string folder;  // of the run, as a user may type it
};

// Asks the job, which has looked at its ranks since they began. Errors: as AskJob.
Result<LiveLook> LookAtLive(const std::filesystem::path& folder);

// "running for 3 min 2 s, without output or recorded collectives for 2 min 50 s"
std::string StateOf(const LiveLook& live);
// Lines in two columns.
std::string ToText(const LiveLook& live);
Json ToJson(const LiveLook& live);

// A known failure in a rank's logs.
struct RankFinding {
  int rank = 0;
  failures::LogFinding known;
};

struct RunStory {
  std::string job;
  std::string chosen;  // the run directory, if dtrun chose the newest one rather than the user
  std::string state;  // "failed after 3.2 s, exit code 1 (user-error)", "running, or ended without a verdict"
  std::optional<LiveLook> live;  // of a job that runs and answers
  std::string verdict;    // the failure as dtrun printed it, with the blamed rank and its place; empty: none
  std::string straggler;  // the rank that made the others wait, if the verdict does not say so; empty: none
  std::string note;       // that events.log is incomplete; empty: it is not
  std::vector<std::string> unread;  // the files that could not be read: which, why, and the next step
  std::vector<Choice> choices;
  std::vector<GpuHost> gpus;  // checked GPUs
  std::string network;        // the table from network.txt: each interface and the reason; empty: one host
  std::vector<RankFinding> findings;  // by rank
};

// The files of known failures (failures.path) that the run's job used; none if not recorded.
std::vector<std::filesystem::path> OwnFailuresOf(const std::filesystem::path& folder);

// An error: the folder tells nothing. It names the file that is missing or unreadable.
Result<RunStory> ReadRun(const std::filesystem::path& folder);

std::string ToText(const RunStory& story);
Json ToJson(const RunStory& story);

}  // namespace dtrun::cli

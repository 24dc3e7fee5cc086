// Finds the run that the word JOB of a verb means.
//
// Reads folders; any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/job/run_registry.h"

namespace dtrun::cli {

// "runs", "runs/JOB" or another folder above runs: the newest run in it. Unset: it contains none, or is
// itself a run.
std::optional<std::filesystem::path> NewestRunIn(const std::filesystem::path& folder);

// Whether the folder has the records of a run.
bool IsRun(const std::filesystem::path& folder);

// This user's own run folders in the subfolders of `folder`.
std::vector<std::filesystem::path> RunsBelow(const std::filesystem::path& folder);

// A job's name, or the last components of a run folder: the newest live run of it, else the newest here, else
// the newest of the user on this host.
std::optional<std::filesystem::path> RunNamed(const std::string& word);

// `word`: a job's name for its newest live run, else its newest run here or among the user's; a run folder,
// its last path components, or a folder above it. Empty or `latest`: the newest run that was started in this
// folder; if there is none, or a verb needs a live one and it has ended, the only live job of the user on
// this host; but a verb that writes into the run's folder takes no job of another folder that was not named.
enum class Needs { kAnyRun, kLiveRun, kRunOfThisFolder };
Result<std::filesystem::path> FindRun(const std::string& word, Needs needs = Needs::kAnyRun);

// Whether this user may read the file or folder; the error names its owner.
Status MayRead(const std::filesystem::path& path);

// Adds the option JOB, which may be left out but not be empty.
void AddJobWord(CLI::App* verb, std::string* to, const char* description);

// For verbs that end a job. `word` as for FindRun; but a name, or no word, must leave just one live job of
// the user on this host, and no word one that was started in this folder.
Result<std::filesystem::path> FindOnlyLiveRun(const std::string& word);

// Whether the job is live: by the lock of its folder or, on a file system without locks, by its process.
bool IsLiveRun(const job::RegisteredRun& run);

}  // namespace dtrun::cli

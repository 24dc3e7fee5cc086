// The verb `dtrun explain`: explains a failure text, or the choices of a job. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

// Resolves "latest": the newest run started from a folder, wherever its records are.
//
// Reads folders; any thread. Temporary folders are shared, so only this user's own folders count there.

// Considers runs/JOB/latest in `folder` and runs that `dtrun torchrun` kept in a folder there (--log-dir).
// Also considers runs started in `folder` but stored elsewhere: `dtrun torchrun` runs in `temp`, and runs in
// the user's state folder because `folder` was not writable. Unset: there is none.
std::optional<std::filesystem::path> LatestRun(const std::filesystem::path& folder,
                                               const std::filesystem::path& temp);

// "runs" or "runs/JOB": the newest run in `folder`. Unset: it contains none, or is itself a run.
std::optional<std::filesystem::path> NewestRunIn(const std::filesystem::path& folder);

struct ExplainArguments {
  std::vector<std::string> words;
  std::vector<std::string> failures;  // the user's own failure files
  bool json = false;
};

// Call before parsing: CLI11 would take "[a,b]" for a list and drop its brackets and commas.
void KeepBrackets(std::vector<std::string>* words);

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddExplain(CLI::App& app, ExplainArguments* to);
// The exit code: 0; 1 if the text contains no known failure; 2 for a user error.
int Explain(const ExplainArguments& arguments);

}  // namespace dtrun::cli

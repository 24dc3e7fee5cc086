// Resolves "latest": the newest run started from a folder, wherever its records are.
//
// Reads folders; any thread. Temporary folders are shared, so only this user's own folders count there.
#pragma once

#include <filesystem>
#include <optional>

namespace dtrun::cli {

// Considers runs/JOB/latest in `folder` and runs that `dtrun torchrun` kept in a folder there (--log-dir).
// Also considers runs started in `folder` but stored elsewhere: `dtrun torchrun` runs in `temp`, and runs in
// the user's state folder because `folder` was not writable. Unset: there is none.
std::optional<std::filesystem::path> LatestRun(const std::filesystem::path& folder,
                                               const std::filesystem::path& temp);

// "runs" or "runs/JOB": the newest run in `folder`. Unset: it contains none, or is itself a run.
std::optional<std::filesystem::path> NewestRunIn(const std::filesystem::path& folder);

}  // namespace dtrun::cli

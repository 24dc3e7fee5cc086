// The run that a user means by "latest": the newest one started from a folder, wherever its record lies.
//
// Reads folders; any thread. Temporary folders are open to everybody, so of those only this user's own count.
#pragma once

#include <filesystem>
#include <optional>

namespace dtrun::cli {

// Of runs/JOB/latest in `folder`, of the runs that `dtrun torchrun` has kept in a folder there (--log-dir),
// and of those started in `folder` that it has kept in `temp`, or that are in the user's folder of state, because
// `folder` could not be written. Unset: there is none.
std::optional<std::filesystem::path> LatestRun(const std::filesystem::path& folder,
                                               const std::filesystem::path& temp);

// "runs", or "runs/JOB": the newest of the runs that `folder` holds. Unset: it holds none, or is one itself.
std::optional<std::filesystem::path> NewestRunIn(const std::filesystem::path& folder);

}  // namespace dtrun::cli

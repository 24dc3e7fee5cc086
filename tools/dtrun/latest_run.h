// The run that a user means by "latest": the newest one started from a folder, wherever its record lies.
//
// Reads folders; any thread. Temporary folders are open to everybody, so of those only this user's own count.
#pragma once

#include <filesystem>
#include <optional>

namespace dtrun::cli {

// Of runs/JOB/latest in `folder`, of the runs that `dtrun torchrun` has kept in a folder there (--log-dir),
// and of those that it has kept in `temp` and started in `folder`. Unset: there is none.
std::optional<std::filesystem::path> LatestRun(const std::filesystem::path& folder,
                                               const std::filesystem::path& temp);

}  // namespace dtrun::cli

// The private folder of a job on this host, for its sockets. Its shared-memory folder
// (core/process/memory_dir.h) is managed together with it.
//
// The guard names it, the agent makes it, and whichever of them is left removes it. If both are killed at
// once, for example by a scheduler that kills a whole control group, the user's next job on this host removes
// it. While the agent lives, it holds a lock on the folder, which marks it as in use. Guard and agent, one
// thread each.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

// A unique name. The guard chooses it and the agent makes the folder, so both know the name before the folder
// exists.
std::filesystem::path NameRuntimeDir();

// Whether `name` is the last part of such a path.
bool IsRuntimeDirName(const std::string& name);

// Makes the folder with mode 0700; the descriptor holds the lock.
Result<UniqueFd> MakeRuntimeDir(const std::filesystem::path& dir);

// Removes both folders; returns what could not be removed.
std::vector<Error> RemoveRuntimeDir(const std::filesystem::path& dir);

// Removes stale folders next to `dir`: those of this user's jobs that are at least `age` old, carry dtrun's
// mark and contain only files of this user.
void RemoveStale(const std::filesystem::path& dir, std::chrono::seconds age);

}  // namespace dtrun::process

// The private folder of a job on this host, for its sockets, and with it the one in memory
// (core/process/memory_dir.h).
//
// Named by the guard, made by the agent, removed by both: whichever is left does it. When both are killed at
// once, as by a scheduler that kills a whole control group, the next job of the user on this host removes it:
// the agent holds a lock on the folder for as long as it lives. Guard and agent, one thread each.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

// A name that nobody else has. The agent makes the folder, so that at no moment it exists with only one
// process that knows of it.
std::filesystem::path NameRuntimeDir();

// The last part of such a name.
bool IsRuntimeDirName(const std::string& name);

// Makes it with mode 0700; the descriptor holds the lock.
Result<UniqueFd> MakeRuntimeDir(const std::filesystem::path& dir);

// Both folders; what could not be removed.
std::vector<Error> RemoveRuntimeDir(const std::filesystem::path& dir);

// Removes the folders beside `dir` that this user's jobs have left for at least `age`: those that carry
// dtrun's mark and in which all is this user's.
void RemoveStale(const std::filesystem::path& dir, std::chrono::seconds age);

}  // namespace dtrun::process

// The private folder of a job on this host, for its sockets. Its shared-memory folder
// (core/process/runtime_dir.h) is managed together with it.
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

// The job's folder in shared memory on this host, where MPI libraries put their segments. /dev/shm is open to
// every user, so the folder's name is random. Only a link in the job's private folder
// (core/process/runtime_dir.h) reveals it.
//
// The first process of the job that needs it makes it; it is removed with the private folder. Any process and
// thread.

// The shared-memory folder of the job with the private folder `runtime_dir`. It has mode 0700 and belongs to
// this user; otherwise the error names its owner.
Result<std::filesystem::path> MakeMemoryDir(const std::filesystem::path& runtime_dir);

// Removes it, if it exists. The error names what could not be removed.
Status RemoveMemoryDir(const std::filesystem::path& runtime_dir);

}  // namespace dtrun::process

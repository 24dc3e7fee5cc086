// The job's folder in shared memory on this host, where MPI libraries put their segments: /dev/shm is open to
// every user, so its name cannot be guessed, and only a link in the private folder of the job
// (core/process/runtime_dir.h) tells it.
//
// Made by whichever process of the job needs it first, removed with the private folder. Any process and
// thread.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace dtrun::process {

// The folder of the job whose private folder is `runtime_dir`: there, mode 0700 and this user's. An error
// says whose it is instead.
Result<std::filesystem::path> MakeMemoryDir(const std::filesystem::path& runtime_dir);

// Removes it, if there is one; what could not be removed.
Status RemoveMemoryDir(const std::filesystem::path& runtime_dir);

}  // namespace dtrun::process

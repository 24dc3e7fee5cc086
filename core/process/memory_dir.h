// The job's folder in shared memory on this host, where MPI libraries put their segments. /dev/shm is open to
// every user, so the folder's name is random. Only a link in the job's private folder
// (core/process/runtime_dir.h) reveals it.
//
// The first process of the job that needs it makes it; it is removed with the private folder. Any process and
// thread.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace dtrun::process {

// The shared-memory folder of the job with the private folder `runtime_dir`. It has mode 0700 and belongs to
// this user; otherwise the error names its owner.
Result<std::filesystem::path> MakeMemoryDir(const std::filesystem::path& runtime_dir);

// Removes it, if it exists. The error names what could not be removed.
Status RemoveMemoryDir(const std::filesystem::path& runtime_dir);

}  // namespace dtrun::process

// Whether this process may use the files of NVIDIA's driver, which its libraries do not tell. Pure; any
// thread.
#pragma once

#include <filesystem>
#include <string>

namespace dtrun::cuda {

// "may not open '/dev/nvidiactl': Permission denied" for the first file of `folder` that a GPU needs and that
// cannot be opened; empty when each can, or when there is none.
std::string DeniedDeviceFile(const std::filesystem::path& folder);

}  // namespace dtrun::cuda

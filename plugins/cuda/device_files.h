// Whether this process may use the files of NVIDIA's driver, which its libraries do not tell. Pure; any
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace dtrun::cuda {

struct DeniedFile {
  std::string what;    // "may not open '/dev/nvidiactl': Permission denied"
  std::string advice;  // what to do about it
};

// The first file of `folder` that a GPU needs and that cannot be opened; none when each can, or there is
// none.
std::optional<DeniedFile> DeniedDeviceFile(const std::filesystem::path& folder);

}  // namespace dtrun::cuda

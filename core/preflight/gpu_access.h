// Whether this user may open the GPUs that are there: a library that may not says that there are none.
//
// Reads file permissions and opens nothing. Any thread.
#pragma once

#include <filesystem>
#include <string>

namespace dtrun::preflight {

// "this user may not open /dev/nvidia0 (permission denied)" of the first such file; empty: none is forbidden.
// `root` is "/" but in tests.
std::string ForbiddenGpu(const std::filesystem::path& root = "/");

// What to do about it.
inline constexpr char kAllowGpu[] = "add the user to the group that owns it, or have its mode corrected";

// A reason why a backend of device memory cannot be used, with that behind it where it may be the cause.
std::string WithGpuAccess(std::string why, const std::filesystem::path& root = "/");

}  // namespace dtrun::preflight

// Whether the host has GPUs and this user may open them; without access, CUDA reports no GPUs.
//
// Reads /sys, /dev and file permissions; opens no device. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrun::preflight {

// "this user may not open /dev/nvidia0 (permission denied)" of the first such file; empty: none is forbidden.
// `root` is "/" but in tests.
std::string ForbiddenGpu(const std::filesystem::path& root = "/");

// What to do about it.
inline constexpr char kAllowGpu[] = "add the user to the group that owns it, or have its mode corrected";

// A reason why a backend of device memory cannot be used, with that behind it where it may be the cause.
std::string WithGpuAccess(std::string why, const std::filesystem::path& root = "/");

// Whether the host has a GPU of NVIDIA or AMD, with or without its driver.
bool HasGpu(const std::filesystem::path& root = "/");

// Why `plugin` cannot be used, for a list: of nccl and cuda on a host without a GPU the cause alone, because
// no driver or library has to be installed there.
std::string ListedReason(std::string_view plugin, const std::string& why,
                         const std::filesystem::path& root = "/");

}  // namespace dtrun::preflight

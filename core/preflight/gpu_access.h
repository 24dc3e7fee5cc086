// Whether the host has GPUs and this user may open them; without access, CUDA reports no GPUs.
//
// Reads /sys, /dev and file permissions; opens no device. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtrun::preflight {

// "this user may not open /dev/nvidia0 (permission denied)" for the first such file; empty: all may be
// opened. `root` is "/" except in tests.
std::string ForbiddenGpu(const std::filesystem::path& root = "/");

// The fix.
inline constexpr char kAllowGpu[] = "add the user to the group that owns it, or have its mode corrected";

// Why a device-memory backend cannot be used; appends missing GPU access if that may be the cause.
std::string WithGpuAccess(std::string why, const std::filesystem::path& root = "/");

// Whether the host has an NVIDIA or AMD GPU, with or without its driver.
bool HasGpu(const std::filesystem::path& root = "/");

// Why `plugin` cannot be used, for a list. For nccl and cuda on a host without a GPU only that cause, because
// no driver or library needs to be installed there.
std::string ListedReason(std::string_view plugin, const std::string& why,
                         const std::filesystem::path& root = "/");

}  // namespace dtrun::preflight

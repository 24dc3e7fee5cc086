#include "core/preflight/gpu_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::preflight {

std::string ForbiddenGpu(const std::filesystem::path& root) {
  std::vector<std::string> names{"kfd"};  // AMD's
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(root / "dev", failure)) {
    const std::string name = entry.path().filename();
    if (name == "nvidiactl" || (name.starts_with("nvidia") && IsDigits(std::string_view(name).substr(6))))
      names.push_back(name);
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::filesystem::path file = root / "dev" / name;
    if (::faccessat(AT_FDCWD, file.c_str(), R_OK | W_OK, AT_EACCESS) == 0 || errno == ENOENT) continue;
    return fmt::format("this user may not open /dev/{} ({})", name,
                       Lowercase(std::generic_category().message(errno)));
  }
  return {};
}

std::string WithGpuAccess(std::string why, const std::filesystem::path& root) {
  if (why.empty() || why.find("may not open '") != why.npos) return why;  // or the plugin already says so
  const std::string forbidden = ForbiddenGpu(root);
  return forbidden.empty() ? why : fmt::format("{}; {}: {}", why, forbidden, kAllowGpu);
}

bool HasGpu(const std::filesystem::path& root) {
  std::error_code failure;
  for (const char* const file : {"dev/nvidiactl", "dev/nvidia0", "dev/kfd", "dev/dxg"}) {
    if (std::filesystem::exists(root / file, failure)) return true;
  }
  for (const auto& entry : std::filesystem::directory_iterator(root / "sys/bus/pci/devices", failure)) {
    const std::string vendor = FirstLineOf((entry.path() / "vendor").string());
    const std::string kind = FirstLineOf((entry.path() / "class").string());
    const bool computes = kind.starts_with("0x03") || kind.starts_with("0x12");  // display, accelerator
    if (computes && (vendor == "0x10de" || vendor == "0x1002")) return true;
  }
  return false;
}

std::string ListedReason(std::string_view plugin, const std::string& why, const std::filesystem::path& root) {
  if ((plugin != "nccl" && plugin != "cuda") || HasGpu(root)) return why;
  return fmt::format("this host has no GPU ({})", why.substr(0, why.find("; ")));
}

}  // namespace dtrun::preflight

#include "core/preflight/gpu_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

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
  if (why.empty() || why.find("may not open '") != why.npos) return why;  // or the plugin says it
  const std::string forbidden = ForbiddenGpu(root);
  return forbidden.empty() ? why : fmt::format("{}; {}: {}", why, forbidden, kAllowGpu);
}

}  // namespace dtrun::preflight

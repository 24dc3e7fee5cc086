#include "device_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

namespace dtrun::cuda {
namespace {

// nvidiactl and nvidia0, nvidia1, ...
bool IsDeviceFile(const std::string& name) {
  constexpr char kPrefix[] = "nvidia";
  if (name == "nvidiactl") return true;
  const std::size_t prefix = sizeof kPrefix - 1;
  return name.size() > prefix && name.compare(0, prefix, kPrefix) == 0 &&
         std::all_of(name.begin() + prefix, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr char kByMode[] =
    "add the user to the group that owns the file (often video or render; then log in again), or have the "
    "administrator give it the mode 0666, the driver's default";
constexpr char kByControlGroup[] =
    "its control group forbids the GPU: start the container with it (docker run --gpus all), or ask the "
    "scheduler for one";

}  // namespace

std::optional<DeniedFile> DeniedDeviceFile(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> files;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (IsDeviceFile(at->path().filename())) files.insert(at->path());
  }
  for (const std::filesystem::path& file : files) {
    // Not by access(): a control group can deny a device that the mode of its file allows.
    const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0) {
      close(descriptor);
    } else if (errno == EACCES || errno == EPERM) {
      const int reason = errno;
      return DeniedFile{"may not open '" + file.string() + "': " + std::generic_category().message(reason),
                        reason == EACCES ? kByMode : kByControlGroup};
    }
  }
  return std::nullopt;
}

}  // namespace dtrun::cuda

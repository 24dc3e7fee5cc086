#include "core/plan/python.h"

#include <fmt/format.h>

namespace dtrun::plan {
namespace {

constexpr char kPath[] = "PYTHONPATH";
constexpr const char* kPlaces[] = {"../..", "../lib/python3/dist-packages/dtrun"};  // in a wheel, in a prefix

}  // namespace

Result<std::filesystem::path> HorovodShim(const std::filesystem::path& bin) {
  std::string looked;
  for (const char* place : kPlaces) {
    const std::filesystem::path shim = (bin / place / "horovod/shim").lexically_normal();
    std::error_code ignored;
    if (std::filesystem::is_directory(shim / "horovod", ignored)) return shim;
    looked += fmt::format("{}'{}'", looked.empty() ? "" : " or ", shim.string());
  }
  return Error::Of(DTRUN_NOT_FOUND,
                   "there is no Python package of this dtrun: no {}; install dtrun with pip, or "
                   "leave python.horovod out and start the script with `python -m dtrun.horovod`",
                   looked);
}

std::filesystem::path PackageFolder(const std::filesystem::path& bin) {
  const std::filesystem::path folder = (bin / "../lib/python3/dist-packages").lexically_normal();
  std::error_code ignored;
  return std::filesystem::is_directory(folder / "dtrun", ignored) ? folder : std::filesystem::path();
}

std::filesystem::path ProgramFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

void PutFirstOnPythonPath(const std::filesystem::path& folder,
                          const std::map<std::string, std::string>& inherited, ProcessVariables* own) {
  std::string rest;
  if (const auto set = own->find(kPath); set != own->end()) {
    rest = set->second;
  } else if (const auto found = inherited.find(kPath); found != inherited.end()) {
    rest = found->second;
  }
  (*own)[kPath] = rest.empty() ? folder.string() : folder.string() + ":" + rest;
}

}  // namespace dtrun::plan

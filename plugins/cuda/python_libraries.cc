#include "python_libraries.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>

namespace dtrun::cuda {
namespace {

namespace fs = std::filesystem;

// Of a virtual environment or a prefix, and of Debian's own interpreter.
constexpr const char* kPackages[][2] = {{"lib", "site-packages"}, {"local/lib", "dist-packages"}};

std::vector<fs::path> Sorted(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

fs::path FirstPython(const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (python.is_absolute() && ::access(python.c_str(), X_OK) == 0) return python;
  }
  return {};
}

}  // namespace

std::vector<std::string> PythonLibraries(const std::vector<std::string>& names, const std::string& path) {
  const fs::path python = FirstPython(path);
  if (python.empty()) return {};
  std::error_code failure;
  const std::string version =
      fs::canonical(python, failure).filename();  // "python3.11", or no more than that
  std::vector<fs::path> folders;
  for (const auto& [lib, packages] : kPackages) {
    for (const fs::path& one : Sorted(python.parent_path().parent_path() / lib)) {
      const std::string name = one.filename();
      if (version.rfind("python3.", 0) == 0 ? name != version : name.rfind("python3.", 0) != 0) continue;
      for (const fs::path& wheel : Sorted(one / packages / "nvidia")) folders.push_back(wheel / "lib");
    }
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    for (const fs::path& folder : folders) {
      if (fs::exists(folder / name, failure)) found.push_back((folder / name).string());
    }
  }
  return found;
}

std::vector<std::string> WithPythonLibraries(std::vector<std::string> names) {
  const char* const path = std::getenv("PATH");
  std::vector<std::string> found = PythonLibraries(names, path == nullptr ? "" : path);
  std::move(found.begin(), found.end(), std::back_inserter(names));
  return names;
}

}  // namespace dtrun::cuda

#include "tools/dtrun/command_line/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <string_view>
#include <system_error>

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

// As root, access() grants everything; the mode says whether anybody may run it.
bool IsExecutable(const fs::path& path) {
  std::error_code failure;
  const fs::perms mode = fs::status(path, failure).permissions();
  constexpr fs::perms kAny = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  return IsFile(path) && (mode & kAny) != fs::perms::none && ::access(path.c_str(), X_OK) == 0;
}

bool NamesAnInterpreter(const fs::path& path) {
  char first[2] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof first);
  return first[0] == '#' && first[1] == '!';
}

bool InPath(const std::string& name, std::string_view path, const fs::path& folder) {
  while (!path.empty()) {
    const std::size_t end = path.find(':');
    const std::string_view one = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (IsExecutable(folder / (one.empty() ? "." : one) / name)) return true;
  }
  return false;
}

}  // namespace

TypedProgram ProgramOf(std::vector<std::string> typed, const std::string& path, const fs::path& folder) {
  const std::string name = typed.front();
  const bool bare = name.find('/') == std::string::npos;
  if (bare && InPath(name, path, folder)) return {std::move(typed), "", true};
  const fs::path file = folder / name;
  if (!IsFile(file)) return {std::move(typed), "", false};
  const bool executable = IsExecutable(file);
  if (name.ends_with(".py") && !(executable && NamesAnInterpreter(file))) {
    typed.insert(typed.begin(), {"python3", "-u"});
    return {std::move(typed),
            fmt::format("'{}' {}: it is run as 'python3 -u {}', by the python3 of PATH", name,
                        executable ? "has no #! line" : "is not executable", name),
            true};
  }
  if (bare && executable) {
    typed.front() = "./" + name;
    return {std::move(typed), fmt::format("'{}' is not in PATH: it is run as './{}'", name, name), true};
  }
  return {std::move(typed), "", true};
}

}  // namespace dtrun::cli

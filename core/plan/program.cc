#include "core/plan/program.h"

#include <fmt/format.h>

#include <fstream>
#include <string_view>
#include <system_error>

#include "core/base/program_files.h"

namespace dtrun::plan {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

bool NamesAnInterpreter(const fs::path& path) {
  char first[2] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof first);
  return first[0] == '#' && first[1] == '!';
}

}  // namespace

TypedProgram ProgramOf(std::vector<std::string> typed, const std::string& path, const fs::path& folder) {
  const std::string name = typed.front();
  const bool bare = name.find('/') == std::string::npos;
  if (bare && FindOnPath(name, path, folder)) return {std::move(typed), "", true};
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

}  // namespace dtrun::plan

#include "core/plan/program.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "core/base/foreign_file.h"
#include "core/base/program_files.h"
#include "sdk/helpers/helper.h"

namespace dtrun::plan {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

bool NamesAnInterpreter(const fs::path& path) { return ReadForeignFile(path, 2) == "#!"; }

// The absolute python3 of PATH. The user has not typed it, so neither a relative folder of PATH nor the
// current folder may provide it.
std::string Python3(const std::string& path, const fs::path& folder) {
  constexpr char kName[] = "python3";
  const auto first = FindOnPath(kName, path, folder);
  const auto meant = FindOnPath(kName, helpers::AbsoluteFolders(path), folder);
  if (first == meant && (meant || !IsFile(folder / kName))) return kName;
  return meant.value_or("/usr/bin/python3").string();
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
    typed.insert(typed.begin(), {Python3(path, folder), "-u"});
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

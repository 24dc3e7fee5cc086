#include "core/preflight/modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/program_files.h"
#include "core/base/text.h"
#include "core/plan/command.h"
#include "sdk/helpers/helper.h"

namespace dtrun::preflight {
namespace {

// Prints the arguments after the first that are missing: modules, entry points (GROUP:NAME), and for
// PACKAGE>=MAJOR.MINOR the version of an installed older package. Runs no code of the current folder, which
// "-c" puts first on sys.path: it removes that entry before any import. It then searches only for files there
// and in the relative folders of the first argument, the ranks' PYTHONPATH.
constexpr char kLook[] = R"(import sys
here = sys.path.pop(0) if sys.path[:1] == [""] else None
import importlib.machinery, importlib.metadata, importlib.util, os
folders = [] if here is None else [os.getcwd()]
for folder in sys.argv[1].split(":") if sys.argv[1] else []:
    if not folder.startswith("/"):
        folders.append(os.path.abspath(folder))
def is_here(name):
    places = folders
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        found = places and importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
        if not found:
            return False
        places = list(found.submodule_search_locations or [])
    return True
def missing(name):
    package, _, least = name.partition(">=")
    if least:
        try:
            version = importlib.metadata.version(package)
            old = [int(part) for part in version.split(".")[:2]] < [int(part) for part in least.split(".")]
        except (importlib.metadata.PackageNotFoundError, ValueError):
            return ""
        return package + " " + version + ", older than " + least if old else ""
    group, _, entry = name.rpartition(":")
    if group:
        points = (point for package in importlib.metadata.distributions() for point in package.entry_points)
        return "" if any(point.group == group and point.name == entry for point in points) else name
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    return "" if found or is_here(name) else name
for name in sys.argv[2:]:
    if missing(name):
        print(missing(name))
)";

std::vector<std::string> EnvironmentOf(const ModuleRequest& request, std::vector<std::string> environment) {
  if (environment.empty()) {
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  }
  for (const auto& variable : request.variables) {
    const std::string head = variable.first + "=";
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(head); });
    environment.push_back(head + variable.second);
  }
  return environment;
}

// `head`: "NAME="
std::string ValueIn(const std::vector<std::string>& environment, std::string_view head) {
  const auto entry =
      std::ranges::find_if(environment, [&](const std::string& one) { return one.starts_with(head); });
  return entry == environment.end() ? "" : entry->substr(head.size());
}

// Any user may have written a file in the current folder, or in a relative folder of PATH. Ranks run it; a
// check does not. The planner may have made a path of a name that is not in PATH.
bool IsOfTheCurrentFolder(const ModuleRequest& request, const std::string& path) {
  if (request.interpreter.find('/') != std::string::npos) {
    const std::filesystem::path folder = std::filesystem::path(request.folder) / "";
    const auto file = (folder / request.interpreter).lexically_normal();
    return file.parent_path() / "" == folder.lexically_normal();
  }
  return FindOnPath(request.interpreter, path, request.folder) !=
         FindOnPath(request.interpreter, helpers::AbsoluteFolders(path), request.folder);
}

}  // namespace

std::string MissingModules(const ModuleRequest& request, const std::vector<std::string>& environment) {
  if (request.names.empty()) return {};
  // Runs in the ranks' folder: an interpreter wrapper such as pyenv's python3 may choose the version by
  // folder.
  helpers::Helper call{.command = {},
                       .environment = EnvironmentOf(request, environment),
                       .folder = request.folder.empty() ? "/" : request.folder};
  const std::string path = ValueIn(call.environment, "PATH=");
  if (IsOfTheCurrentFolder(request, path)) return {};
  const auto interpreter = plan::FindProgram(request.interpreter, path, request.folder);
  if (!interpreter) return interpreter.error().text;
  call.command = {*interpreter, "-c", kLook, ValueIn(call.environment, "PYTHONPATH=")};
  call.command.insert(call.command.end(), request.names.begin(), request.names.end());
  const helpers::Answer found = helpers::Ask(call);
  if (!found.succeeded()) {
    const std::string why = found.end == helpers::End::kNotStarted ? std::strerror(found.status)
                            : found.end == helpers::End::kTooLate  ? "it gave no answer in a minute"
                                                                   : "it failed";
    return fmt::format("'{}' cannot list modules: {}; run '{} -c 0' there", *interpreter, why, *interpreter);
  }
  std::vector<std::string> modules, entry_points, old;
  for (const std::string_view line : LinesOf(found.text)) {
    const std::string text = Printable(line);
    if (line.find(", older than ") != line.npos) {
      old.push_back(text);
    } else {
      (line.find(':') == line.npos ? modules : entry_points).push_back("'" + text + "'");
    }
  }
  if (!modules.empty()) return fmt::format("'{}' has no module {}", *interpreter, fmt::join(modules, ", "));
  if (!entry_points.empty()) {
    return fmt::format("'{}' has no entry point {}", *interpreter, fmt::join(entry_points, ", "));
  }
  return old.empty() ? "" : fmt::format("'{}' has {}", *interpreter, fmt::join(old, "; "));
}

}  // namespace dtrun::preflight

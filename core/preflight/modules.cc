#include "core/preflight/modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/printable.h"
#include "core/base/program_output.h"
#include "core/base/text.h"
#include "core/plan/command.h"

namespace dtrun::preflight {
namespace {

// Prints those of its arguments that are no modules, of GROUP:NAME those that are no entry points, and of
// PACKAGE>=MAJOR.MINOR the version of one that is installed and older. Runs no code of the current folder,
// which "-c" puts first on sys.path: takes it off before any import, and then looks there for files alone.
constexpr char kLook[] = R"(import sys
here = sys.path.pop(0) if sys.path[:1] == [""] else None
import importlib.machinery, importlib.metadata, importlib.util, os
def is_here(name):
    places = [os.getcwd()] if here is not None else None
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
for name in sys.argv[1:]:
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

std::string PathIn(const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  const auto path =
      std::ranges::find_if(environment, [&](const std::string& entry) { return entry.starts_with(kPath); });
  return path == environment.end() ? "" : path->substr(kPath.size());
}

}  // namespace

std::string MissingModules(const ModuleRequest& request, const std::vector<std::string>& environment) {
  if (request.names.empty()) return {};
  ProgramCall call{{}, EnvironmentOf(request, environment), request.folder};
  const auto interpreter = plan::FindProgram(request.interpreter, PathIn(call.environment), request.folder);
  if (!interpreter) return interpreter.error().text;
  call.command = {*interpreter, "-c", kLook};
  call.command.insert(call.command.end(), request.names.begin(), request.names.end());
  const auto found = OutputOf(std::move(call));
  if (!found) return found.error().text;
  if (!found->succeeded()) {
    return fmt::format("'{}' cannot be asked for modules: it failed; run '{} -c 0' there", *interpreter,
                       *interpreter);
  }
  std::vector<std::string> modules, entry_points, old;
  for (const std::string_view line : LinesOf(found->text)) {
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

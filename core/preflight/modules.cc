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

// Prints those of its arguments that are no modules.
constexpr char kLook[] = R"(import importlib.util, sys
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is None:
        print(name)
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
  std::vector<std::string> missing;
  for (const std::string_view line : LinesOf(found->text)) missing.push_back("'" + Printable(line) + "'");
  if (missing.empty()) return {};
  return fmt::format("'{}' has no module {}", *interpreter, fmt::join(missing, ", "));
}

}  // namespace dtrun::preflight

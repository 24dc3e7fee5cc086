// The ranks' program, and the variables that its libraries read.
#include "core/pmi/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/base/program_files.h"
#include "core/base/text.h"
#include "core/environments/libraries.h"
#include "core/plan/command.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;

// Interpreters load the libraries that their scripts use.
bool RunsScripts(const fs::path& program) {
  const std::string name = program.filename();
  constexpr std::string_view kShells[] = {"sh", "bash", "dash", "zsh", "env", "perl", "julia"};
  return name.starts_with("python") || std::ranges::find(kShells, name) != std::end(kShells);
}

// A file that is not a binary is a script, or unknown.
bool MayUse(const fs::path& program, const environments::Library& library) {
  if (program.empty() || RunsScripts(program) || !pmi::IsLinkedWith(program, "")) return true;
  return std::ranges::any_of(Split(library.files, ' '), [&](std::string_view file) {
    return !file.empty() && pmi::IsLinkedWith(program, file);
  });
}

}  // namespace

Checks CheckInterfaceVariables(const InterfaceVariables& given) {
  Checks checks;
  for (const auto& [name, value] : given.variables) {
    const environments::Library* const library = environments::LibraryOf(name);
    if (library == nullptr || !environments::MeansNoInterface(name, value, given.interfaces)) continue;
    const bool reads = std::ranges::find(given.of_backend, name) != given.of_backend.end();
    if (!reads && !MayUse(given.program, *library)) continue;
    checks.push_back({"network", reads ? Level::kProblem : Level::kWarning,
                      fmt::format("{}={}, which {} reads, matches no interface of this host; it has {}", name,
                                  value, library->name, network::ListText(given.interfaces)),
                      fmt::format("set {} to one of these in job.env, or unset it", name)});
  }
  return checks;
}

fs::path ProgramOf(const std::string& word, const std::string& folder, const std::string& search_path) {
  if (word.empty() || word.find("${") != std::string::npos) return {};
  if (word.find('/') != std::string::npos) return fs::path(folder) / word;
  return FindOnPath(word, search_path, folder).value_or(fs::path());
}

std::vector<std::string> VariablesOfBackend(const Facts& facts) {
  const std::string names = FactOf(facts, "by interface");
  if (names.empty()) return {};
  const std::vector<std::string_view> words = Split(names, ' ');
  return {words.begin(), words.end()};
}

void CheckProgram(const Request& request, Checks* to) {
  std::error_code error;
  const std::string& folder = request.folder;
  const bool there = folder.empty() || fs::is_directory(folder, error);
  if (!there || (!folder.empty() && ::access(folder.c_str(), X_OK) != 0)) {
    to->push_back({"program", Level::kProblem,
                   fmt::format("the working directory '{}' {} here", folder,
                               there ? "cannot be entered" : "does not exist"),
                   "mount or make it on every host, or set job.cwd to a folder that all of them have"});
  }
  const std::string& program = request.program;
  if (program.empty() || program.find("${") != std::string::npos) return;
  const auto found = plan::FindProgram(program, request.search_path, folder);
  if (found) {
    to->push_back({"program", Level::kOk, fmt::format("'{}' can be run", program)});
    return;
  }
  const std::string& text = found.error().text;
  const std::size_t step = text.find("; ");
  to->push_back({"program", Level::kProblem, text.substr(0, step),
                 step == text.npos ? "install it on every host at the same place, or correct job.command"
                                   : text.substr(step + 2) + "; every host needs it at the same place"});
}

}  // namespace dtrun::preflight

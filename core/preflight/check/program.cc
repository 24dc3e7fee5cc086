#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "core/plan/command.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace fs = std::filesystem;

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

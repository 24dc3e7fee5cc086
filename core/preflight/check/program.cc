#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/program_files.h"
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
  const bool path = program.find('/') != std::string::npos;
  if (path ? IsExecutable(fs::path(folder) / program)
           : FindOnPath(program, request.search_path, folder).has_value()) {
    to->push_back({"program", Level::kOk, fmt::format("'{}' can be run", program)});
    return;
  }
  const bool exists = path && fs::exists(fs::path(folder) / program, error);
  to->push_back({"program", Level::kProblem,
                 fmt::format("the program '{}' {}", program,
                             exists ? "cannot be executed here"
                             : path ? "does not exist here"
                                    : "is in no folder of the ranks' PATH here"),
                 exists ? "make it executable (chmod +x) by the user who runs the job"
                        : "install it on every host at the same place, or correct job.command"});
}

}  // namespace dtrun::preflight

// Builds the command of a job and finds its program, as execvp would. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

struct TypedProgram {
  std::vector<std::string> command;  // what to run
  std::string assumed;  // a line that explains how it differs from the typed command; empty: it does not
  bool found = true;    // false: neither `path` nor `folder` has that name
};

// As with torchrun, a Python file that is not executable is run by python3 from the absolute folders of
// `path`. As with mpirun, a name that is not in `path` (the variable PATH) is looked up in `folder`, the
// current one. Anything else stays unchanged. REQUIRES: typed is not empty
TypedProgram ProgramOf(std::vector<std::string> typed, const std::string& path,
                       const std::filesystem::path& folder);

// Absolute path of `program`: relative to `cwd` if it has a slash, else the first executable file
// in `path` (the PATH variable). Errors name the cause: no such file, a folder, not executable
// (with the chmod that fixes it), not in PATH.
Result<std::string> FindProgram(const std::string& program, const std::string& path, const std::string& cwd);

using Environment = std::map<std::string, std::string>;

// job.command as ranks run it in `cwd`, by the rules for a typed program (ProgramOf). The torchrun launcher
// has its own rules and is exempt.
std::vector<std::string> CommandOf(const spec::JobSpec& spec, const Environment& environment,
                                   const std::string& cwd);

// Rejects a working folder that a terminal or log could not display unchanged.
Status CheckFolder(const spec::JobSpec& spec, const std::string& cwd);

// Rejects a command that names a file which is missing in `cwd` but exists beside the config.
Status CheckBeside(const spec::JobSpec& spec, const std::string& cwd);

// Checks the command before there is a plan, for a job on this host started in `folder`: CheckBeside, and
// that its program exists.
Status CheckCommand(const spec::JobSpec& spec, const Environment& environment, const std::string& folder);

}  // namespace dtrun::plan

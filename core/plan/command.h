// The command of a job, and finding its program, as execvp would. Any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/settings.h"

namespace dtrun::plan {

// Absolute path of `program`: taken from `cwd` when it has a slash, else the first
// executable file in `path` (the PATH variable). Errors say what was found instead: no
// such file, a folder, not executable (with the chmod that fixes it), not in PATH.
Result<std::string> FindProgram(const std::string& program, const std::string& path, const std::string& cwd);

using Environment = std::map<std::string, std::string>;

// job.command as ranks run it in `cwd`, by the rules for a program that is typed (ProgramOf), but for a
// launcher that has its own, torchrun.
std::vector<std::string> CommandOf(const config::Settings& settings, const Environment& environment,
                                   const std::string& cwd);

// Refuses a folder of the ranks that a terminal or a log could not show as it is.
Status CheckFolder(const config::Settings& settings, const std::string& cwd);

// Refuses a command that names a file which is not in `cwd` and lies beside the config.
Status CheckBeside(const config::Settings& settings, const std::string& cwd);

// What of the command can be known before there is a plan, for a job on this host that is started in
// `folder`: CheckBeside, and that its program exists.
Status CheckCommand(const config::Settings& settings, const Environment& environment,
                    const std::string& folder);

}  // namespace dtrun::plan

// Finding the program of a command, as execvp would. Any thread.
#pragma once

#include <string>

#include "core/base/result.h"

namespace dtrun::plan {

// Absolute path of `program`: taken from `cwd` when it has a slash, else the first
// executable file in `path` (the PATH variable). Errors say what was found instead: no
// such file, a folder, not executable (with the chmod that fixes it), not in PATH.
Result<std::string> FindProgram(const std::string& program, const std::string& path, const std::string& cwd);

}  // namespace dtrun::plan

// Which file a command means, and why a file cannot be run. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::process {

// The file that execve is to be given, seen from `cwd`: `name` itself when it has a slash,
// else the first executable file of that name along PATH in `env`. `option` is where the user wrote it.
Result<std::string> FindProgram(const std::string& name, const std::string& cwd,
                                const std::vector<std::string>& env,
                                const std::string& option = "job.command");

// Turns the errno of execve(file) in `cwd` into cause and next step. `name` is what the
// user wrote.
std::string ExplainExec(const std::string& name, const std::string& file, const std::string& cwd, int number,
                        const std::string& option = "job.command");

}  // namespace dtrun::process

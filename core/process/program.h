// Finds the file that a command refers to, and explains why a file cannot be run. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::process {

// The file to pass to execve, seen from `cwd`: `name` itself if it contains a slash, otherwise the first
// executable file of that name along PATH in `env`. `option` is the option that the user wrote it in.
Result<std::string> FindProgram(const std::string& name, const std::string& cwd,
                                const std::vector<std::string>& env,
                                const std::string& option = "job.command");

// Turns the errno of execve(file) in `cwd` into cause and next step. `name` is the name that the user wrote.
std::string ExplainExec(const std::string& name, const std::string& file, const std::string& cwd, int number,
                        const std::string& option = "job.command");

}  // namespace dtrun::process

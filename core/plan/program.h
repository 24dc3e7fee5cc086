// What a program, typed or in job.command, stands for: where it is, and what runs it when it does not run
// itself.
//
// Reads file modes and first bytes; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrun::plan {

struct TypedProgram {
  std::vector<std::string> command;  // what to run
  std::string assumed;  // a line that says how it differs from what was typed; empty: it does not
  bool found = true;    // false: nothing of that name in `path` or `folder`
};

// As torchrun, a Python file that is not a program of its own is run by python3, the one of the absolute
// folders of `path`. As mpirun, a name that is not in `path` (the variable PATH) is looked for in `folder`,
// the current one. Anything else stays as it is. REQUIRES: typed is not empty
TypedProgram ProgramOf(std::vector<std::string> typed, const std::string& path,
                       const std::filesystem::path& folder);

}  // namespace dtrun::plan

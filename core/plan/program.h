// Resolves a program, typed or in job.command: its path, and the interpreter if it is not executable.
//
// Reads file modes and first bytes; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

}  // namespace dtrun::plan

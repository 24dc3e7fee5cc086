// Selects the module that `import horovod` loads in the ranks' Python programs: python.horovod. Any
// thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/base/process_variables.h"
#include "core/base/result.h"

namespace dtrun::plan {

// The folder with dtrun's `horovod` module, in the Python package that belongs to the program in folder
// `bin`: from a wheel or an installed tree.
Result<std::filesystem::path> HorovodShim(const std::filesystem::path& bin);

// The folder with dtrun's Python package, for PYTHONPATH: in the tree where the program in folder `bin` is
// installed. Empty: there is none, or it is a wheel's, which Python finds by itself.
std::filesystem::path PackageFolder(const std::filesystem::path& bin);

// The folder of the running program.
std::filesystem::path ProgramFolder();

// Puts `folder` before the PYTHONPATH that a rank has in `own`, or else inherits.
void PutFirstOnPythonPath(const std::filesystem::path& folder,
                          const std::map<std::string, std::string>& inherited, ProcessVariables* own);

}  // namespace dtrun::plan

// Where pip puts NVIDIA's libraries, which the dynamic loader does not search. Files are looked at; nothing
// is run. Pure but for that; any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::cuda {

// The files called one of `names`, in that order, that the wheels of NVIDIA have put into the packages of the
// `python3` that is first on `path` (PATH): of a virtual environment, its own.
std::vector<std::string> PythonLibraries(const std::vector<std::string>& names, const std::string& path);

// `names` for the loader, and then those files of this process's PATH.
std::vector<std::string> WithPythonLibraries(std::vector<std::string> names);

}  // namespace dtrun::cuda

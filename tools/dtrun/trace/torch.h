// Merges traces of torch's profiler into a timeline: each into the rows of its rank, on the root's clock.
//
// Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/dtrun/trace/run.h"

namespace dtrun::trace {

// The files: each of `given`, or those in a folder, down three levels, that end in .json.
Result<std::vector<std::filesystem::path>> TorchFiles(const std::vector<std::string>& given);

// An error names the file and what it lacks.
Status AddTorch(const std::filesystem::path& file, Timeline* to);

}  // namespace dtrun::trace

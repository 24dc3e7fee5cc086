// Whole files, written so that a crash at any moment leaves the old or the new content.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::train {

// Writes `path` + ".tmp", syncs it, renames it over `path` and syncs the folder. One
// writer per path.
Status WriteFileAtomically(const std::string& path, std::string_view content);

Result<std::string> ReadFile(const std::string& path);

}  // namespace dtrun::train

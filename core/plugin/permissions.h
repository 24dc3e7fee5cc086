// Who else could have written a file that is about to run inside this process.
//
// Stops accidents (an unpacked archive with mode 0777, a scratch folder), not a hostile
// process of the same user. Pure functions of the file system; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::plugin {

// Checks the file and every folder and link that the absolute `path` leads through, to the real file. Refuses
// what everybody may write (a folder with the sticky bit, such as /tmp, is accepted: others cannot replace a
// file of ours there) and what belongs to neither root nor the user. Group-writable places are added to
// `warnings`. The error ends with the command that fixes it.
Status CheckPermissions(const std::filesystem::path& path, std::vector<std::string>* warnings);

// The warnings for all these plugins in one line, which leaves the rest to `dtrun plugins list`; empty: there
// are none.
std::string GroupWarning(const std::vector<std::filesystem::path>& plugins);

}  // namespace dtrun::plugin

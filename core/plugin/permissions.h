// Checks that no other user could have written a file before it runs inside this process.
//
// Prevents accidents (an unpacked archive with mode 0777, a scratch folder), not attacks by a
// process of the same user. Pure functions of the file system; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::plugin {

// Checks the file and every folder and link on the absolute `path`, down to the real file. Rejects
// world-writable places and owners other than root and the user. Accepts a folder with the sticky bit, such
// as /tmp, because others cannot replace our file there. Adds group-writable places to `warnings`. The error
// ends with the command that fixes it.
Status CheckPermissions(const std::filesystem::path& path, std::vector<std::string>* warnings);

// One line that summarises the warnings for all these plugins and refers to `dtrun plugins list`; empty:
// there are none.
std::string GroupWarning(const std::vector<std::filesystem::path>& plugins);

}  // namespace dtrun::plugin

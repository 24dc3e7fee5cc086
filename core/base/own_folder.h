// Folders on a path that other users may reach into, opened step by step, so that nobody else's link leads
// dtrun elsewhere.
//
// A link is followed where it belongs to this user or root, or is in a folder that nobody else can write
// into; any other is an error that names the link and its owner. What was opened stays what it is, whatever
// is done to the path afterwards. Pure functions; any thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun {

// Opens `folder` for names below it (O_PATH). Missing ones on the way, itself included, are made with 0777
// less the umask where `make` says so.
Result<UniqueFd> OpenFolder(const std::filesystem::path& folder, bool make = false);

// Whether somebody other than this user and root can put a name into the open folder.
bool OthersMayWrite(int folder);

// Opens the folder, itself no link, and takes its lock (flock); nothing where somebody holds that.
UniqueFd OpenLocked(const std::filesystem::path& folder);

// Makes `name` in the open folder, with `mode` whatever the umask, and opens it (O_PATH). errno in `number`
// where that fails: EEXIST when something exists there.
UniqueFd MakeFolderAt(int folder, const std::string& name, mode_t mode, int& number);

// The folder `name` in the open folder, made where it is not there. Never through a link. `shown` is the
// outer folder's name for errors.
Result<UniqueFd> EnterFolderAt(int folder, const std::filesystem::path& shown, const std::string& name,
                               mode_t mode);

}  // namespace dtrun

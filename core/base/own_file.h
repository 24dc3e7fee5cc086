// Files of dtrun's in folders that others may reach: private whatever the umask, and never written through
// a link or into a file that somebody else has put there.
//
// Pure functions; any thread. Errors name the file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun {

inline constexpr mode_t kPrivateFolder = 0700;
inline constexpr mode_t kPrivateFile = 0600;

// A file's mode in a folder that is shared with `folder_mode`.
constexpr mode_t FileModeIn(mode_t folder_mode) { return folder_mode & 0666; }

// An empty file for writing at the end. What stood under the name is replaced and not written to.
Result<UniqueFd> MakeOwnFile(const std::filesystem::path& file, mode_t mode);
// The same in the open folder, under the last part of `file`; the rest is the folder's name for errors.
Result<UniqueFd> MakeOwnFileAt(int folder, const std::filesystem::path& file, mode_t mode);
// As it is, or made when it is not there; for files that several share.
Result<UniqueFd> AppendToOwnFileAt(int folder, const std::filesystem::path& file, mode_t mode);

// Replaces `name` in the open folder by `content`, whole or not at all. `shown` is the folder's name for
// errors.
Status ReplaceOwnFile(int folder, const std::filesystem::path& shown, const std::string& name,
                      std::string_view content, mode_t mode);

// Replaces the content of a file that the user named, in place: it may be a link, a device, or a file that a
// container has mounted. An error where it lies in a folder that others may write into and belongs to one of
// them, or has another name too: the content would go where a stranger wants it.
Status WriteNamedFile(const std::filesystem::path& file, std::string_view content);

// Whom `folder` is at the mercy of, for people: one who owns it or a folder above it, or anybody who may
// write into one. Empty: nobody but this user and root.
std::string WhoMayReplace(const std::filesystem::path& folder);

}  // namespace dtrun

// Files that dtrun writes in folders that other users may reach. They are private whatever the umask. dtrun
// never writes them through a link or into a file that another user created.
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

// The mode of a file in a folder with mode `folder_mode`.
constexpr mode_t FileModeIn(mode_t folder_mode) { return folder_mode & 0666; }

// Creates an empty file for appending. An existing file of that name is replaced, never written to.
Result<UniqueFd> MakeOwnFile(const std::filesystem::path& file, mode_t mode);
// The same in the open folder, under the last component of `file`; errors show the whole path.
Result<UniqueFd> MakeOwnFileAt(int folder, const std::filesystem::path& file, mode_t mode);
// Opens an existing file for appending, or creates it; for files with several writers.
Result<UniqueFd> AppendToOwnFileAt(int folder, const std::filesystem::path& file, mode_t mode);

// Atomically replaces `name` in the open folder by `content`. `shown` is the folder's name for errors.
Status ReplaceOwnFile(int folder, const std::filesystem::path& shown, const std::string& name,
                      std::string_view content, mode_t mode);

// Replaces the content of a file that the user named, in place: it may be a link, a device, or a file that a
// container has mounted. Fails if the file lies in a folder that others may write into and also belongs to
// one of them or has another hard link: a stranger could choose the target of the write.
Status WriteNamedFile(const std::filesystem::path& file, std::string_view content);

// Describes who could replace files in `folder`: an owner of it or of a folder above it, or every user who
// may write into one. Empty: only this user and root.
std::string WhoMayReplace(const std::filesystem::path& folder);

}  // namespace dtrun

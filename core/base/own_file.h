// Files that dtrun writes in folders that other users may reach. They are private whatever the umask. dtrun
// never writes them through a link or into a file that another user created.
//
// Pure functions; any thread. Errors name the file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// Opens folders on a path that other users may change, component by component, so that no other user's link
// redirects dtrun.
//
// A link is followed if it belongs to this user or root, or lies in a folder that no other user can write
// into. Any other link is an error that names the link and its owner. An open folder stays the same folder,
// whatever happens to the path afterwards. Every ownership check uses IsStranger, the rule below. Pure
// functions; any thread.

// Opens `folder` for names below it (O_PATH). With `make`, creates it and missing parents with mode 0777 less
// the umask.
Result<UniqueFd> OpenFolder(const std::filesystem::path& folder, bool make = false);

// Whether a user other than this one and root can create names in the open folder.
bool OthersMayWrite(int folder);

// The names in the open folder, unsorted, without "." and ".."; none if it cannot be listed.
std::vector<std::string> NamesIn(int folder);

// Opens the folder, which must not be a link, and takes its lock (flock). Empty if another process
// holds the lock.
UniqueFd OpenLocked(const std::filesystem::path& folder);

// Creates `name` in the open folder, with `mode` whatever the umask, and opens it (O_PATH). On failure sets
// `number` to the errno: EEXIST if the name exists.
UniqueFd MakeFolderAt(int folder, const std::string& name, mode_t mode, int& number);

// Opens the folder `name` in the open folder, creating it if missing. Never follows a link. `shown` is the
// outer folder's name for errors.
Result<UniqueFd> EnterFolderAt(int folder, const std::filesystem::path& shown, const std::string& name,
                               mode_t mode);

// Whether the user that owns a file is a stranger to this process: one who could change the file while dtrun
// uses it. Not strangers: this user, root, and in a user namespace the overflow uid, which the kernel shows
// for all users that the namespace does not map. The host's root is one of these, and in a rootless container
// it owns
// `/`. `shared`: the file lies in a folder that others may write into, where the overflow uid may belong to
// any user.
bool IsStranger(uid_t owner, bool shared = false);
// The same for groups.
bool IsStrangeGroup(gid_t group);

}  // namespace dtrun

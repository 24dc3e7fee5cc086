#include "core/process/runtime_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

#include "core/base/own_file.h"
#include "core/base/own_folder.h"
#include "core/base/text.h"
#include "core/process/memory_dir.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "dtrun-";
constexpr std::size_t kDigits = 12;

// An empty file that marks a folder as dtrun's; without it only an empty folder is removed. If a full disk
// had room for the folder, it also has room for this file.
constexpr char kMark[] = ".dtrun-runtime-folder";

bool IsMarked(const fs::path& dir) {
  struct stat info {};
  return ::lstat((dir / kMark).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Whether everything in it belongs to this user, and no other file system is mounted there.
bool HoldsOnlyOurs(const fs::path& dir) {
  struct stat top {};
  if (::lstat(dir.c_str(), &top) != 0) return false;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) != 0) return false;
    if (info.st_uid != ::geteuid() || info.st_dev != top.st_dev) return false;
  }
  return !error;
}

// Whether other users cannot rename what is made in it: it belongs to this user or root, and others may not
// write to it unless it is sticky like /tmp. After `su` the variable may still name another user's folder.
bool IsSafe(const char* folder) {
  struct stat info {};
  return ::stat(folder, &info) == 0 && S_ISDIR(info.st_mode) && !IsStranger(info.st_uid) &&
         ((info.st_mode & 022) == 0 || (info.st_mode & S_ISVTX) != 0) && ::access(folder, W_OK | X_OK) == 0;
}

}  // namespace

bool IsRuntimeDirName(const std::string& name) {
  return name.size() == kPrefix.size() + kDigits && name.starts_with(kPrefix) &&
         IsLowerHex(std::string_view(name).substr(kPrefix.size()));
}

fs::path NameRuntimeDir() {
  constexpr std::size_t kLongest = 60;  // so that a socket path in the folder fits into 108 bytes
  fs::path place = "/tmp";
  const char* user = std::getenv("XDG_RUNTIME_DIR");
  if (user != nullptr && user[0] == '/' && std::string_view(user).size() <= kLongest && IsSafe(user))
    place = user;
  std::uint64_t number = 0;
  // Cannot fail for so few bytes after the system has booted.
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return place / fmt::format("{}{:012x}", kPrefix, number >> 16);
}

Result<UniqueFd> MakeRuntimeDir(const fs::path& dir) {
  if (::mkdir(dir.c_str(), 0700) != 0) {
    return Error{DTRUN_SYSTEM,
                 Error::System(fmt::format("cannot create the folder '{}'", dir.string()), errno).text +
                     "; free some space there or point XDG_RUNTIME_DIR to a writable folder"};
  }
  struct stat made {};
  if (::lstat(dir.c_str(), &made) != 0 || !S_ISDIR(made.st_mode) || made.st_uid != ::geteuid() ||
      (made.st_mode & 077) != 0) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("the folder '{}' is not the private one that dtrun just created: another user "
                             "may rename entries of '{}'; point XDG_RUNTIME_DIR to a folder of your own",
                             dir.string(), dir.parent_path().string())};
  }
  if (auto mark = MakeOwnFile(dir / kMark, kPrivateFile); !mark) {
    ::rmdir(dir.c_str());
    return mark.error();
  }
  return OpenLocked(dir);  // some file systems have no locks: then no other dtrun can see it as stale either
}

std::vector<Error> RemoveRuntimeDir(const fs::path& dir) {
  std::vector<Error> failed;
  if (Status removed = RemoveMemoryDir(dir); !removed) failed.push_back(removed.error());
  std::error_code error;
  fs::remove_all(dir, error);
  if (error) failed.push_back(Error::System(fmt::format("cannot remove '{}'", dir.string()), error.value()));
  return failed;
}

void RemoveStale(const fs::path& dir, std::chrono::seconds age) {
  std::error_code error;
  // Not ::time(), which may lag file timestamps by a second for some milliseconds.
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  for (fs::directory_iterator it(dir.parent_path(), error), end; !error && it != end; it.increment(error)) {
    const fs::path other = it->path();
    if (!IsRuntimeDirName(other.filename().string())) continue;
    struct stat info {};
    if (::lstat(other.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
    // A young folder may not be locked yet.
    if (now - info.st_mtime < age.count()) continue;
    const UniqueFd lock = OpenLocked(other);
    if (!lock || !HoldsOnlyOurs(other)) continue;
    if (IsMarked(other)) {
      RemoveRuntimeDir(other);
    } else {
      ::rmdir(other.c_str());  // left by a job that was killed before it made the mark; fails unless empty
    }
  }
}

}  // namespace dtrun::process

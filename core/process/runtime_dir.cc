#include "core/process/runtime_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "core/base/fd.h"
#include "core/base/own_file.h"
#include "core/base/text.h"

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

constexpr char kPlace[] = "/dev/shm";
constexpr char kLink[] = "memory";  // in the private folder
constexpr std::size_t kMemoryDigits = 32;

// "dtrun-" and so many random hexadecimal digits; at most 32.
std::string NewName(std::size_t digits) {
  std::array<std::uint64_t, 2> number{};
  // Cannot fail for so few bytes after the system has booted.
  while (::getrandom(number.data(), sizeof number, 0) != sizeof number) {
  }
  return fmt::format("{}{:016x}{:016x}", kPrefix, number[0], number[1]).substr(0, kPrefix.size() + digits);
}

bool HasForm(const std::string& name, std::size_t digits) {
  return name.size() == kPrefix.size() + digits && name.starts_with(kPrefix) &&
         IsLowerHex(std::string_view(name).substr(kPrefix.size()));
}

// The link's target; empty if there is no link or the target is not one of dtrun's folders.
fs::path Told(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  const bool ours =
      !error && target.parent_path() == kPlace && HasForm(target.filename().string(), kMemoryDigits);
  return ours ? target : fs::path();
}

// Fails unless `folder` is a folder that only this user can enter.
Status CheckPrivate(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return Error::System(fmt::format("open the folder '{}'", folder.string()), errno);
  if (info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return {};
  return Error::Of(DTRUN_FAILED_PRECONDITION,
                   "the folder '{}' belongs to user {} with mode {:04o}, and MPI's segments need one that "
                   "only this user can enter; ask its owner, and start the job again",
                   folder.string(), info.st_uid, info.st_mode & 07777);
}

}  // namespace

bool IsRuntimeDirName(const std::string& name) { return HasForm(name, kDigits); }

fs::path NameRuntimeDir() {
  constexpr std::size_t kLongest = 60;  // so that a socket path in the folder fits into 108 bytes
  fs::path place = "/tmp";
  const char* user = std::getenv("XDG_RUNTIME_DIR");
  if (user != nullptr && user[0] == '/' && std::string_view(user).size() <= kLongest && IsSafe(user))
    place = user;
  return place / NewName(kDigits);
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
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the folder '{}' is not the private one that dtrun just created: another user "
                     "may rename entries of '{}'; point XDG_RUNTIME_DIR to a folder of your own",
                     dir.string(), dir.parent_path().string());
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

Result<fs::path> MakeMemoryDir(const fs::path& runtime_dir) {
  const fs::path link = runtime_dir / kLink;
  // Make the link first: a process that removes the private folder then always finds the other one.
  const fs::path wanted = fs::path(kPlace) / NewName(kMemoryDigits);
  if (::symlink(wanted.c_str(), link.c_str()) != 0 && errno != EEXIST)  // EEXIST: another process was faster
    return Error::System(fmt::format("make the link '{}'", link.string()), errno);
  const fs::path folder = Told(link);
  if (folder.empty()) {
    return Error::Of(DTRUN_INTERNAL,
                     "'{}' is not the link to the job's folder in '{}' that dtrun makes; start the job "
                     "again",
                     link.string(), kPlace);
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{DTRUN_SYSTEM,
                 Error::System(fmt::format("make the folder '{}'", folder.string()), errno).text +
                     "; look at `df -h /dev/shm`"};
  }
  if (Status own = CheckPrivate(folder); !own) return own.error();
  return folder;
}

Status RemoveMemoryDir(const fs::path& runtime_dir) {
  const fs::path folder = Told(runtime_dir / kLink);
  if (folder.empty()) return {};
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) return Error::System(fmt::format("cannot remove '{}'", folder.string()), error.value());
  return {};
}

}  // namespace dtrun::process

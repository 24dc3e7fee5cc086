#include "core/base/own_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace dtrun {
namespace {

namespace fs = std::filesystem;

constexpr int kWrite = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Overrides the umask. A file system without modes ignores this; there the folder's mode decides.
void SetMode(int fd, mode_t mode) { (void)::fchmod(fd, mode); }

std::string Next(int number) {
  switch (number) {
    case ENFILE: return "; raise fs.file-max (`sysctl`)";
    case EFBIG: return "; raise `ulimit -f`";
    case ENOSPC:
    case EDQUOT: return "; free some space there";
    case ELOOP: return "; it is a symbolic link: remove it";
    default: return "";
  }
}

Error Cannot(std::string_view action, const fs::path& file, int number) {
  Error error = Error::System(fmt::format("cannot {} '{}'", action, file.string()), number);
  error.text += Next(number);
  return error;
}

int WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t size = ::write(fd, content.data(), content.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(size));
  }
  return 0;
}

// Creates `name`, also in place of a file of that name.
UniqueFd CreateAnew(int folder, const std::string& name) {
  UniqueFd fd(::openat(folder, name.c_str(), kWrite | O_EXCL, kPrivateFile));
  if (!fd && errno == EEXIST && ::unlinkat(folder, name.c_str(), 0) == 0)
    fd = UniqueFd(::openat(folder, name.c_str(), kWrite | O_EXCL, kPrivateFile));
  return fd;
}

constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLinks = 40;  // the kernel's limit

void Prepend(std::deque<std::string>& steps, const fs::path& path) {
  std::deque<std::string> more;
  for (const fs::path& step : path.relative_path()) {
    if (!step.empty() && step != ".") more.push_back(step.string());
  }
  steps.insert(steps.begin(), more.begin(), more.end());
}

// The id that stands for users or groups missing in `map`; -1 if the map is complete.
std::uint32_t Unmapped(const char* map, const char* overflow) {
  std::ifstream ranges(map);
  std::uint64_t inside = 0, outside = 0, count = 0;
  const bool whole = (ranges >> inside >> outside >> count) && count >= UINT_MAX;
  std::uint32_t number = 65534;
  std::ifstream(overflow) >> number;
  return whole || count == 0 ? static_cast<std::uint32_t>(-1) : number;
}

}  // namespace

Result<UniqueFd> MakeOwnFile(const fs::path& file, mode_t mode) {
  const UniqueFd folder(::open(file.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Cannot("create", file, errno);
  return MakeOwnFileAt(folder.get(), file, mode);
}

Result<UniqueFd> MakeOwnFileAt(int folder, const fs::path& file, mode_t mode) {
  UniqueFd fd = CreateAnew(folder, file.filename().string());
  if (!fd) return Cannot("create", file, errno);
  SetMode(fd.get(), mode);
  return fd;
}

Result<UniqueFd> AppendToOwnFileAt(int folder, const fs::path& file, mode_t mode) {
  UniqueFd fd(::openat(folder, file.filename().c_str(), kWrite, kPrivateFile));
  if (!fd) return Cannot("create", file, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Cannot("look at", file, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error::Of(DTRUN_SYSTEM, "cannot write '{}': it is not a regular file; remove it", file.string());
  }
  if (info.st_nlink > 1) {
    return Error::Of(DTRUN_SYSTEM, "cannot write '{}': it is a file with another name too; remove it",
                     file.string());
  }
  SetMode(fd.get(), mode);
  return fd;
}

Status ReplaceOwnFile(int folder, const fs::path& shown, const std::string& name, std::string_view content,
                      mode_t mode) {
  const fs::path file = shown / name;
  const std::string fresh = fmt::format("{}.new-{}", name, ::getpid());
  const UniqueFd fd = CreateAnew(folder, fresh);  // a killed process may have left one
  if (!fd) return Cannot("write", file, errno);
  SetMode(fd.get(), mode);
  int number = WriteAll(fd.get(), content);
  if (number == 0 && ::renameat(folder, fresh.c_str(), folder, name.c_str()) != 0) number = errno;
  if (number == 0) return {};
  (void)::unlinkat(folder, fresh.c_str(), 0);
  return Cannot("write", file, number);
}

Status WriteNamedFile(const fs::path& file, std::string_view content) {
  constexpr int kInPlace = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  constexpr mode_t kAsUmaskSays = 0666;
  const fs::path whole = fs::absolute(file);
  const std::string name = whole.filename().string();
  const Result<UniqueFd> folder = OpenFolder(whole.parent_path());
  if (!folder) return Error::Of(DTRUN_SYSTEM, "cannot write '{}': {}", file.string(), folder.error().text);
  const bool shared = OthersMayWrite(folder->get());
  const auto trap = [&](const struct stat& info) {
    const bool strange = IsStranger(info.st_uid, true);
    return Error::Of(
        DTRUN_SYSTEM,
        "cannot write '{}': it is a {} {}, where others may write; remove it, or name another file",
        file.string(), S_ISLNK(info.st_mode) ? "link" : "file",
        strange ? fmt::format("of user {}", info.st_uid) : "with another name too");
  };
  struct stat info {};
  const bool link =
      ::fstatat(folder->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
  if (link && shared && IsStranger(info.st_uid, true)) return trap(info);
  UniqueFd fd(
      ::openat(folder->get(), name.c_str(), kInPlace | O_CREAT | (link ? 0 : O_NOFOLLOW), kAsUmaskSays));
  if (!fd || ::fstat(fd.get(), &info) != 0) return Cannot("write", file, errno);
  const bool strange = IsStranger(info.st_uid, true) || (S_ISREG(info.st_mode) && info.st_nlink > 1);
  if (!link && shared && strange) return trap(info);
  constexpr int kHasNoLength = EINVAL;  // for a device or a pipe
  if (::ftruncate(fd.get(), 0) != 0 && errno != kHasNoLength) return Cannot("write", file, errno);
  const int number = WriteAll(fd.get(), content);
  return number == 0 ? Status() : Cannot("write", file, number);
}

std::string WhoMayReplace(const fs::path& folder) {
  for (fs::path place = folder;; place = place.parent_path()) {
    struct stat info {};
    if (::stat(place.c_str(), &info) == 0) {
      if (IsStranger(info.st_uid)) {
        return fmt::format("'{}' belongs to user {}", place.string(), info.st_uid);
      }
      if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
        return fmt::format("every user can write to '{}'", place.string());
      }
    }
    if (place == place.parent_path()) return {};
  }
}

bool OthersMayWrite(int folder) {
  struct stat info {};
  if (::fstat(folder, &info) != 0) return true;
  return (info.st_mode & (S_IWOTH | S_IWGRP)) != 0 || IsStranger(info.st_uid);
}

Result<UniqueFd> OpenFolder(const fs::path& folder, bool make) {
  const fs::path whole = fs::absolute(folder);
  const auto cannot = [&](const fs::path& at) { return Error::System("open '" + at.string() + "'", errno); };
  std::deque<std::string> steps;
  Prepend(steps, whole);
  fs::path at = "/";
  UniqueFd here(::open("/", kFolder));
  int links = 0;
  while (here && !steps.empty()) {
    const std::string name = std::move(steps.front());
    steps.pop_front();
    UniqueFd next(::openat(here.get(), name.c_str(), kFolder));
    if (!next && errno == ENOENT && make) {
      if (::mkdirat(here.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return cannot(at / name);
      next = UniqueFd(::openat(here.get(), name.c_str(), kFolder));
    }
    if (next) {
      at /= name;
      here = std::move(next);
      continue;
    }
    if (errno != ENOTDIR && errno != ELOOP) return cannot(at / name);
    const UniqueFd link(::openat(here.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!link || ::fstat(link.get(), &info) != 0) return cannot(at / name);
    errno = S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR;
    if (!S_ISLNK(info.st_mode) || ++links > kMostLinks) return cannot(at / name);
    if (IsStranger(info.st_uid, true) && OthersMayWrite(here.get())) {
      return Error::Of(DTRUN_SYSTEM,
                       "'{}' is a symbolic link of user {} in a folder that others can write to, and is not "
                       "followed: remove it",
                       (at / name).string(), info.st_uid);
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0) return cannot(at / name);
    const fs::path to(std::string(target.data(), static_cast<std::size_t>(size)));
    Prepend(steps, to);
    if (to.is_absolute()) {
      at = "/";
      here = UniqueFd(::open("/", kFolder));
    }
  }
  if (!here) return cannot(at);
  return here;
}

std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  UniqueFd listed(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(listed.get()), ::closedir);
  if (entries == nullptr) return names;
  listed.Release();
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

UniqueFd OpenLocked(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.Reset();
  return fd;
}

UniqueFd MakeFolderAt(int folder, const std::string& name, mode_t mode, int& number) {
  number = 0;
  UniqueFd made;
  if (::mkdirat(folder, name.c_str(), 0700) == 0) made = UniqueFd(::openat(folder, name.c_str(), kFolder));
  if (!made) {
    number = errno;
    return made;
  }
  struct stat info {};
  const UniqueFd readable(::openat(made.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The owner of the outer folder may have replaced it by a folder of their own; that one keeps its
  // mode.
  if (readable && ::fstat(readable.get(), &info) == 0 && info.st_uid == ::geteuid())
    (void)::fchmod(readable.get(), mode);
  return made;
}

Result<UniqueFd> EnterFolderAt(int folder, const fs::path& shown, const std::string& name, mode_t mode) {
  int number = 0;
  UniqueFd fd = MakeFolderAt(folder, name, mode, number);
  if (!fd && number == EEXIST) {
    fd = UniqueFd(::openat(folder, name.c_str(), kFolder));
    number = fd ? 0 : errno;
  }
  if (fd) return fd;
  if (number != ENOTDIR && number != ELOOP) {
    return Error::System(fmt::format("cannot make the folder '{}'", (shown / name).string()), number);
  }
  struct stat info {};
  (void)::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
  return Error::Of(DTRUN_SYSTEM, "cannot make the folder '{}': there is a {} of user {}; remove it",
                   (shown / name).string(), S_ISLNK(info.st_mode) ? "link" : "file", info.st_uid);
}

bool IsStranger(uid_t owner, bool shared) {
  static const uid_t unmapped = Unmapped("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
  return owner != 0 && owner != ::geteuid() && (shared || owner != unmapped);
}

bool IsStrangeGroup(gid_t group) {
  static const gid_t unmapped = Unmapped("/proc/self/gid_map", "/proc/sys/kernel/overflowgid");
  return group != 0 && group != ::getegid() && group != unmapped;
}

}  // namespace dtrun

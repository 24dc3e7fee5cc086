#include "core/base/own_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <deque>
#include <fstream>
#include <string>
#include <utility>

namespace dtrun {
namespace {

namespace fs = std::filesystem;

constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLinks = 40;  // the kernel's limit

void Prepend(std::deque<std::string>& steps, const fs::path& path) {
  std::deque<std::string> more;
  for (const fs::path& step : path.relative_path()) {
    if (!step.empty() && step != ".") more.push_back(step.string());
  }
  steps.insert(steps.begin(), more.begin(), more.end());
}

}  // namespace

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
      return Error{
          DTRUN_SYSTEM,
          fmt::format("'{}' is a symbolic link of user {} in a folder that others can write to, and is not "
                      "followed: remove it",
                      (at / name).string(), info.st_uid)};
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
  return Error{DTRUN_SYSTEM,
               fmt::format("cannot make the folder '{}': there is a {} of user {}; remove it",
                           (shown / name).string(), S_ISLNK(info.st_mode) ? "link" : "file", info.st_uid)};
}

namespace {

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

bool IsStranger(uid_t owner, bool shared) {
  static const uid_t unmapped = Unmapped("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
  return owner != 0 && owner != ::geteuid() && (shared || owner != unmapped);
}

bool IsStrangeGroup(gid_t group) {
  static const gid_t unmapped = Unmapped("/proc/self/gid_map", "/proc/sys/kernel/overflowgid");
  return group != 0 && group != ::getegid() && group != unmapped;
}

}  // namespace dtrun

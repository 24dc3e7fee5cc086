#include "core/plugin/permissions.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "core/base/owner.h"

namespace dtrun::plugin {
namespace {

namespace fs = std::filesystem;
constexpr int kMostLinks = 40;  // as the kernel follows, path_resolution(7)

// `place` itself, not what a link leads to. A link has no mode of its own: who may replace it is for its
// folder to say, and in a sticky one for its owner. `shared`: it is in such a folder.
Status Check(const fs::path& place, const struct stat& info, bool shared,
             std::vector<std::string>* warnings) {
  const bool folder = S_ISDIR(info.st_mode), link = S_ISLNK(info.st_mode);
  const char* what = folder ? "folder" : link ? "link" : "file";
  if (IsStranger(info.st_uid, shared)) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the {} '{}' belongs to user {}, who is neither root nor you (user {}), and could "
                    "change the plugin; install a copy of your own, or run: chown {}{} '{}'",
                    what, place.string(), info.st_uid, ::geteuid(), link ? "-h " : "", ::geteuid(),
                    place.string())};
  }
  const bool sticky = folder && (info.st_mode & S_ISVTX) != 0;
  if (link || sticky) return {};
  if ((info.st_mode & S_IWOTH) != 0) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("the {} '{}' may be written by everybody (mode {:04o}); run: chmod o-w '{}'",
                             what, place.string(), info.st_mode & 07777u, place.string())};
  }
  const bool by_group = (info.st_mode & S_IWGRP) != 0;
  if (by_group && IsStrangeGroup(info.st_gid)) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("the {} '{}' may be written by group {}, which is not your own (group {}); run: "
                             "chmod g-w '{}'",
                             what, place.string(), info.st_gid, ::getegid(), place.string())};
  }
  if (by_group && warnings != nullptr) {
    warnings->push_back(fmt::format("the {} '{}' may be written by group {}; to stop that: chmod g-w '{}'",
                                    what, place.string(), info.st_gid, place.string()));
  }
  return {};
}

}  // namespace

Status CheckPermissions(const fs::path& path, std::vector<std::string>* warnings) {
  std::deque<fs::path> left(path.begin(), path.end());
  fs::path at;
  bool shared = false;  // the folder `at`
  for (int links = 0; !left.empty();) {
    const fs::path part = left.front();
    left.pop_front();
    if (part.empty() || part == ".") continue;
    const fs::path place = part == ".." ? at.parent_path() : at / part;
    struct stat info;
    if (::lstat(place.c_str(), &info) != 0)
      return Error::System(fmt::format("stat '{}'", place.string()), errno);
    if (Status checked = Check(place, info, shared, warnings); !checked) return checked;
    if (!S_ISLNK(info.st_mode)) {
      at = place;
      shared = (info.st_mode & S_IWOTH) != 0;
      continue;
    }
    std::error_code unreadable;
    const fs::path target = fs::read_symlink(place, unreadable);
    if (!unreadable && ++links > kMostLinks)
      unreadable = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (unreadable) return Error::System(fmt::format("follow '{}'", place.string()), unreadable.value());
    left.insert(left.begin(), target.begin(), target.end());
    if (target.is_absolute()) {
      at.clear();
      shared = false;
    }
  }
  return {};
}

}  // namespace dtrun::plugin

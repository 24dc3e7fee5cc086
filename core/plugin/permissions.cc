#include "core/plugin/permissions.h"

#include <endian.h>
#include <fmt/format.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "core/base/own_file.h"

namespace dtrun::plugin {
namespace {

namespace fs = std::filesystem;
constexpr int kMostLinks = 40;  // the kernel's limit, path_resolution(7)

// "user 7": a user or group that an access list lets write to `place`, other than its owner, its group, root
// and this user; empty: none. Linux stores a list as little-endian words (acl(5), posix_acl_xattr.h). `info`:
// its group bits are the mask of a list, so without S_IWGRP no entry grants writing.
Result<std::string> WriterByList(const fs::path& place, const struct stat& info) {
  if ((info.st_mode & S_IWGRP) == 0) return std::string();
  std::vector<char> list(65536);  // XATTR_SIZE_MAX
  const ssize_t size = ::lgetxattr(place.c_str(), "system.posix_acl_access", list.data(), list.size());
  if (size < 0) {
    if (errno == ENODATA || errno == EOPNOTSUPP) return std::string();
    return Error::System(fmt::format("read the access list of '{}'", place.string()), errno);
  }
  posix_acl_xattr_entry entry;
  for (std::size_t at = sizeof(posix_acl_xattr_header); at + sizeof entry <= static_cast<std::size_t>(size);
       at += sizeof entry) {
    std::memcpy(&entry, list.data() + at, sizeof entry);
    const auto tag = le16toh(entry.e_tag);
    const std::uint32_t id = le32toh(entry.e_id);
    if ((le16toh(entry.e_perm) & ACL_WRITE) == 0 || id == 0) continue;
    if (tag == ACL_USER && id != ::geteuid()) return fmt::format("user {}", id);
    if (tag == ACL_GROUP && id != ::getegid()) return fmt::format("group {}", id);
  }
  return std::string();
}

// Checks `place` itself, not the target of a link. A link has no mode of its own: its folder decides who may
// replace it, and in a sticky folder its owner. `shared`: it is in such a folder.
Status Check(const fs::path& place, const struct stat& info, bool shared,
             std::vector<std::string>* warnings) {
  const bool folder = S_ISDIR(info.st_mode), link = S_ISLNK(info.st_mode);
  const char* what = folder ? "folder" : link ? "link" : "file";
  if (IsStranger(info.st_uid, shared)) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the {} '{}' belongs to user {}, who is neither root nor you (user {}), and could "
                     "change the plugin; install a copy of your own, or run: chown {}{} '{}'",
                     what, place.string(), info.st_uid, ::geteuid(), link ? "-h " : "", ::geteuid(),
                     place.string());
  }
  const bool sticky = folder && (info.st_mode & S_ISVTX) != 0;
  if (link || sticky) return {};
  if ((info.st_mode & S_IWOTH) != 0) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the {} '{}' can be written by every user (mode {:04o}); run: chmod o-w '{}'", what,
                     place.string(), info.st_mode & 07777u, place.string());
  }
  const Result<std::string> writer = WriterByList(place, info);
  if (!writer) return writer.error();
  if (!writer->empty()) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the {} '{}' may be written by {}, by its access list; run: setfacl -b '{}'", what,
                     place.string(), *writer, place.string());
  }
  const bool by_group = (info.st_mode & S_IWGRP) != 0;
  if (by_group && IsStrangeGroup(info.st_gid)) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the {} '{}' may be written by group {}, which is not your own (group {}); run: "
                     "chmod g-w '{}'",
                     what, place.string(), info.st_gid, ::getegid(), place.string());
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
  bool shared = false;  // whether the folder `at` is shared
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

std::string GroupWarning(const std::vector<fs::path>& plugins) {
  std::vector<std::string> warnings;
  for (const fs::path& plugin : plugins) {
    // Loading the plugin reports an error.
    static_cast<void>(CheckPermissions(plugin, &warnings));
  }
  std::ranges::sort(warnings);
  warnings.erase(std::unique(warnings.begin(), warnings.end()), warnings.end());
  if (warnings.empty()) return {};
  const std::string more =
      warnings.size() == 1 ? "" : fmt::format("; `dtrun plugins list` has {} more", warnings.size() - 1);
  return fmt::format("plugins of this job could be changed by others: {}{}", warnings.front(), more);
}

}  // namespace dtrun::plugin

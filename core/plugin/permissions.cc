#include "core/plugin/permissions.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dtrun::plugin {

Status CheckPermissions(const std::filesystem::path& path, std::vector<std::string>* warnings) {
  for (std::filesystem::path place = path;; place = place.parent_path()) {
    struct stat info;
    if (::stat(place.c_str(), &info) != 0) {
      return Error::System(fmt::format("stat '{}'", place.string()), errno);
    }
    const bool folder = S_ISDIR(info.st_mode);
    const char* what = folder ? "folder" : "file";
    if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
      return Error{
          DTRUN_FAILED_PRECONDITION,
          fmt::format("the {} '{}' belongs to user {}, who is neither root nor you (user {}), and could "
                      "change the plugin; install a copy of your own, or run: chown {} '{}'",
                      what, place.string(), info.st_uid, ::geteuid(), ::geteuid(), place.string())};
    }
    const bool sticky = folder && (info.st_mode & S_ISVTX) != 0;
    if ((info.st_mode & S_IWOTH) != 0 && !sticky) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   fmt::format("the {} '{}' may be written by everybody (mode {:04o}); run: chmod o-w '{}'",
                               what, place.string(), info.st_mode & 07777u, place.string())};
    }
    if ((info.st_mode & S_IWGRP) != 0 && !sticky && warnings != nullptr) {
      warnings->push_back(fmt::format("the {} '{}' may be written by group {}; to stop that: chmod g-w '{}'",
                                      what, place.string(), info.st_gid, place.string()));
    }
    if (place == place.parent_path()) return {};
  }
}

}  // namespace dtrun::plugin

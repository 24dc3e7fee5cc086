// A plugin file that is open from its first look to its last: what was examined, hashed and loaded is one
// file, whatever becomes of its name meanwhile.
//
// Move-only; one thread.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::plugin {

class OpenedFile {
 public:
  static Result<OpenedFile> Open(const std::filesystem::path& path);

  int descriptor() const { return fd_.get(); }
  const struct stat& info() const { return info_; }

  // Whether it is still as it was opened, by its size and times: nobody has written to it, renamed it or
  // taken it away.
  bool IsUnchanged() const;
  // The same, and `path` still leads to it: what the loader is about to open by that name is this file.
  bool IsStillAt(const std::filesystem::path& path) const;
  // Whether `library`, a handle of dlopen, is this file and not another that had its name for a while. The
  // loader is asked, which knows a file by device and inode. In a container without /proc it cannot be, and
  // the name that it has loaded must lead to this file.
  bool IsLoadedAs(void* library) const;

 private:
  OpenedFile(UniqueFd fd, const struct stat& info) : fd_(std::move(fd)), info_(info) {}

  UniqueFd fd_;
  struct stat info_;
};

}  // namespace dtrun::plugin

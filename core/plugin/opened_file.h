// A plugin file that stays open from examination to loading, so that the examined, hashed and loaded file is
// the same, even if its path is changed meanwhile.
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

  // Whether size and times are still those of the opened file: it was not written, renamed or removed.
  bool IsUnchanged() const;
  // The same, and `path` still refers to this file, so the loader will open this file by that path.
  bool IsStillAt(const std::filesystem::path& path) const;
  // Whether `library`, a handle of dlopen, is this file and not another that had its path for a while. Asks
  // the loader, which identifies a file by device and inode. In a container without /proc that is impossible;
  // there the path of the loaded library must refer to this file.
  bool IsLoadedAs(void* library) const;

 private:
  OpenedFile(UniqueFd fd, const struct stat& info) : fd_(std::move(fd)), info_(info) {}

  UniqueFd fd_;
  struct stat info_;
};

}  // namespace dtrun::plugin

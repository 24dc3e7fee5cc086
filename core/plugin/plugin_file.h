// A plugin file that stays open from examination to loading, so that the examined, hashed and loaded file is
// the same, even if its path is changed meanwhile.
//
// Move-only; one thread.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/plugin/plugin.h"

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

// Identifies the state of a plugin file, so that a rank loads the same file that was examined before the
// start, and a config can pin a file.
//
// The id has one of these forms:
//   "sha256 <64 hex digits>"                     of all bytes (FIPS 180-4); only if a config requests it
//   "build-id <hex digits>, size <bytes>, changed <seconds>.<nanoseconds>"  the linker's build id and the
//       time of the last write; valid on its own host only
//   "size <bytes>, changed <seconds>.<nanoseconds>"  for a file without a build id; likewise
// A build id alone is compared as such: agents of an older release send that. Functions of the file; any
// thread.

// The form of a pin. `digits` may be upper or lower case.
std::string Sha256Id(std::string_view digits);

bool IsPin(std::string_view id);

// The id of the file in the form of `like`; if `like` is empty, in a form that needs no hashing. `build_id`
// is the file's, empty if it has none.
Result<std::string> FileId(const OpenedFile& file, const std::string& build_id, std::string_view like);

// The known identity of a plugin file, and the standard error that rejects it.
//
// A value; any thread.
struct Identity {
  File file;
  std::string build_id;  // hex; empty if the file has none
  std::string version;   // empty until the plugin reports it
  std::string abi;       // "0.1"; empty until the plugin reports it
  std::string id = {};   // FileId; empty until read

  // "backend plugin '/x/libdtrun_backend_a.so' (name 'a', version 1.2, build-id 0f…, ABI 0.2; this dtrun has
  // ABI 0.1): <why>; <action>". `action` is a single next step.
  Error Refuse(dtrun_status code, std::string_view why, std::string_view action) const;
};

// "0.1"
std::string AbiText(std::uint32_t major, std::uint32_t minor);

}  // namespace dtrun::plugin

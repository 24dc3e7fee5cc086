#include "core/base/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "core/base/own_folder.h"

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

}  // namespace

Result<UniqueFd> MakeOwnFile(const fs::path& file, mode_t mode) {
  const UniqueFd folder(::open(file.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Cannot("create", file, errno);
  return MakeOwnFileAt(folder.get(), file, mode);
}

Result<UniqueFd> MakeOwnFileAt(int folder, const fs::path& file, mode_t mode) {
  const std::string name = file.filename().string();
  UniqueFd fd(::openat(folder, name.c_str(), kWrite | O_EXCL, kPrivateFile));
  if (!fd && errno == EEXIST && ::unlinkat(folder, name.c_str(), 0) == 0) {
    fd = UniqueFd(::openat(folder, name.c_str(), kWrite | O_EXCL, kPrivateFile));
  }
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
    return Error{DTRUN_SYSTEM,
                 fmt::format("cannot write '{}': it is not a regular file; remove it", file.string())};
  }
  if (info.st_nlink > 1) {
    return Error{DTRUN_SYSTEM, fmt::format("cannot write '{}': it is a file with another name too; remove it",
                                           file.string())};
  }
  SetMode(fd.get(), mode);
  return fd;
}

Status ReplaceOwnFile(int folder, const fs::path& shown, const std::string& name, std::string_view content,
                      mode_t mode) {
  const fs::path file = shown / name;
  const std::string fresh = fmt::format("{}.new-{}", name, ::getpid());
  int number = 0;
  UniqueFd fd(::openat(folder, fresh.c_str(), kWrite | O_EXCL, kPrivateFile));
  if (!fd && errno == EEXIST && ::unlinkat(folder, fresh.c_str(), 0) == 0) {  // left by a killed process
    fd = UniqueFd(::openat(folder, fresh.c_str(), kWrite | O_EXCL, kPrivateFile));
  }
  if (!fd) return Cannot("write", file, errno);
  SetMode(fd.get(), mode);
  number = WriteAll(fd.get(), content);
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
  if (!folder)
    return Error{DTRUN_SYSTEM, fmt::format("cannot write '{}': {}", file.string(), folder.error().text)};
  const bool shared = OthersMayWrite(folder->get());
  const auto trap = [&](const struct stat& info) {
    const bool strange = IsStranger(info.st_uid, true);
    return Error{
        DTRUN_SYSTEM,
        fmt::format(
            "cannot write '{}': it is a {} {}, where others may write; remove it, or name another file",
            file.string(), S_ISLNK(info.st_mode) ? "link" : "file",
            strange ? fmt::format("of user {}", info.st_uid) : "with another name too")};
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

}  // namespace dtrun

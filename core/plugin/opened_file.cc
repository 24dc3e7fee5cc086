#include "core/plugin/opened_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "core/base/foreign_file.h"

namespace dtrun::plugin {
namespace {

bool IsSame(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// A path that was never passed to the loader before. The loader remembers each path by which it found a
// library, and descriptor numbers are reused. Slashes may be repeated, which makes the path unique.
std::string FreshName(int descriptor) {
  static std::atomic<std::size_t> uses{0};
  return "/proc/self/fd" + std::string(++uses, '/') + std::to_string(descriptor);
}

}  // namespace

Result<OpenedFile> OpenedFile::Open(const std::filesystem::path& path) {
  Result<UniqueFd> fd = OpenForeignFile(path);
  if (!fd) return fd.error();
  struct stat info;
  if (::fstat(fd->get(), &info) != 0) return Error::System(fmt::format("stat '{}'", path.string()), errno);
  return OpenedFile(*std::move(fd), info);
}

bool OpenedFile::IsUnchanged() const {
  struct stat now;
  return ::fstat(fd_.get(), &now) == 0 && now.st_size == info_.st_size &&
         IsSame(now.st_mtim, info_.st_mtim) && IsSame(now.st_ctim, info_.st_ctim);
}

bool OpenedFile::IsStillAt(const std::filesystem::path& path) const {
  struct stat there;
  return ::stat(path.c_str(), &there) == 0 && there.st_dev == info_.st_dev && there.st_ino == info_.st_ino &&
         IsUnchanged();
}

bool OpenedFile::IsLoadedAs(void* library) const {
  if (::access("/proc/self/fd", X_OK) != 0) {
    link_map* loaded = nullptr;
    return ::dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && IsStillAt(loaded->l_name);
  }
  void* const same = ::dlopen(FreshName(fd_.get()).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (same != nullptr) ::dlclose(same);  // only decrements the reference count
  return same != nullptr && same == library;
}

}  // namespace dtrun::plugin

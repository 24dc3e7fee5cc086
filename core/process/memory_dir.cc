#include "core/process/memory_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "core/base/fd.h"
#include "core/base/text.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr char kPlace[] = "/dev/shm";
constexpr char kLink[] = "memory";  // in the private folder
constexpr std::string_view kMemoryPrefix = "dtrun-";
constexpr std::size_t kMemoryDigits = 32;

std::string NewName() {
  std::array<std::uint64_t, 2> number{};
  // Cannot fail for so few bytes after the system has booted.
  while (::getrandom(number.data(), sizeof number, 0) != sizeof number) {
  }
  return fmt::format("{}{:016x}{:016x}", kMemoryPrefix, number[0], number[1]);
}

// Whether `name` has the form that NewName makes.
bool IsName(const std::string& name) {
  return name.size() == kMemoryPrefix.size() + kMemoryDigits && name.starts_with(kMemoryPrefix) &&
         IsLowerHex(std::string_view(name).substr(kMemoryPrefix.size()));
}

// The link's target; empty if there is no link or the target is not one of dtrun's folders.
fs::path Told(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  const bool ours = !error && target.parent_path() == kPlace && IsName(target.filename().string());
  return ours ? target : fs::path();
}

// Fails unless `folder` is a folder that only this user can enter.
Status CheckPrivate(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return Error::System(fmt::format("open the folder '{}'", folder.string()), errno);
  if (info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return {};
  return Error{
      DTRUN_FAILED_PRECONDITION,
      fmt::format("the folder '{}' belongs to user {} with mode {:04o}, and MPI's segments need one that "
                  "only this user can enter; ask its owner, and start the job again",
                  folder.string(), info.st_uid, info.st_mode & 07777)};
}

}  // namespace

Result<fs::path> MakeMemoryDir(const fs::path& runtime_dir) {
  const fs::path link = runtime_dir / kLink;
  // Make the link first: a process that removes the private folder then always finds the other one.
  const fs::path wanted = fs::path(kPlace) / NewName();
  if (::symlink(wanted.c_str(), link.c_str()) != 0 && errno != EEXIST)  // EEXIST: another process was faster
    return Error::System(fmt::format("make the link '{}'", link.string()), errno);
  const fs::path folder = Told(link);
  if (folder.empty()) {
    return Error{
        DTRUN_INTERNAL,
        fmt::format("'{}' is not the link to the job's folder in '{}' that dtrun makes; start the job "
                    "again",
                    link.string(), kPlace)};
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{DTRUN_SYSTEM,
                 Error::System(fmt::format("make the folder '{}'", folder.string()), errno).text +
                     "; look at `df -h /dev/shm`"};
  }
  if (Status own = CheckPrivate(folder); !own) return own.error();
  return folder;
}

Status RemoveMemoryDir(const fs::path& runtime_dir) {
  const fs::path folder = Told(runtime_dir / kLink);
  if (folder.empty()) return {};
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) return Error::System(fmt::format("cannot remove '{}'", folder.string()), error.value());
  return {};
}

}  // namespace dtrun::process

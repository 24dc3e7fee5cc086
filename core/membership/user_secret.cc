#include "core/membership/user_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "core/base/text.h"
#include "core/hosts/this_machine.h"
#include "core/store/server.h"
#include "dtrun/plugin/hash.hpp"

namespace dtrun::membership {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "dtrun-user";
constexpr std::size_t kBytes = 32;

// Whether only this user and the superuser can change the folder's content.
bool IsOurs(const fs::path& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 0022) == 0;
}

// Opens the file, which must also belong to this user; empty if there is none yet.
Result<UniqueFd> OpenFile(const fs::path& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return file;
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return Error::System(fmt::format("open '{}'", path.string()), errno);
  }
  if (S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0) return file;
  return Error::Of(DTRUN_FAILED_PRECONDITION, "'{}' must be a file that only you can read; remove it",
                   path.string());
}

// The file contains its secret from the moment that it is visible to others.
Status MakeFile(const fs::path& path) {
  const fs::path made = fmt::format("{}-{}", path.string(), ::getpid());
  const std::string digits = store::NewJobKey();
  UniqueFd file(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  bool done =
      file && ::write(file.get(), digits.data(), digits.size()) == static_cast<ssize_t>(digits.size());
  done = done && (::link(made.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int number = errno;
  if (file) ::unlink(made.c_str());
  if (done) return {};
  return Error::System(fmt::format("write '{}'", path.string()), number);
}

Result<std::string> ReadDigits(int file, const fs::path& path) {
  std::array<char, 2 * kBytes + 1> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  const std::string_view digits(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (digits.size() == 2 * kBytes && IsLowerHex(digits)) return std::string(digits);
  return Error::Of(DTRUN_FAILED_PRECONDITION, "'{}' does not hold a key; remove it", path.string());
}

// Distributes well enough for positions in a file.
std::uint64_t HashOf(std::string_view text) {
  sdk::Fnv1a hash;
  hash.Add(text);
  return hash.value();
}

}  // namespace

std::vector<fs::path> UserSecret::Places() {
  std::vector<fs::path> places;
  if (const char* session = std::getenv("XDG_RUNTIME_DIR"); session != nullptr && *session == '/') {
    places.emplace_back(session);
  }
  places.emplace_back(fmt::format("/run/user/{}", ::geteuid()));
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    places.push_back(fs::path(home) / ".dtrun");
  }
  places.emplace_back(fmt::format("/tmp/dtrun-user-{}", ::geteuid()));
  return places;
}

Result<UserSecret> UserSecret::Open(const std::vector<fs::path>& places) {
  Error last{DTRUN_FAILED_PRECONDITION, "none is private to you"};
  for (const fs::path& place : places) {
    const std::string name = place.filename().string();
    if (name == ".dtrun" || name.starts_with("dtrun-"))
      ::mkdir(place.c_str(), 0700);  // IsOurs checks the result
    if (!IsOurs(place)) continue;
    const fs::path path = place / kFile;
    auto file = OpenFile(path);
    if (file && !*file) {
      if (Status made = MakeFile(path); !made) {
        last = made.error();
        continue;
      }
      file = OpenFile(path);
    }
    if (!file) return file.error();
    auto digits = ReadDigits(file->get(), path);
    if (!digits) return digits.error();
    return UserSecret(*std::move(file), *std::move(digits));
  }
  return Error::Of(last.code,
                   "found no folder that only you can write ({}); set XDG_RUNTIME_DIR or HOME to one",
                   last.text);
}

bool UserSecret::ClaimRoot(int port) const {
  // The folder may be shared between machines and containers, for example a home.
  const std::uint64_t place = HashOf(fmt::format("{} {}", hosts::MachineIdentity(), port));
  struct flock claim {};
  claim.l_type = F_WRLCK;
  claim.l_whence = SEEK_SET;
  claim.l_start = static_cast<off_t>(place >> 2);
  claim.l_len = 1;
  // Without locks in the file system no claim is possible, and binding the port itself decides.
  return ::fcntl(file_.get(), F_OFD_SETLK, &claim) == 0 || (errno != EAGAIN && errno != EACCES);
}

}  // namespace dtrun::membership

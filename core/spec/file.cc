#include "core/spec/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "core/base/fd.h"
#include "core/base/suggest.h"
#include "core/base/units.h"

namespace dtrun::spec {
namespace {

// A writer started together with dtrun must open a named pipe within this time; after that it may write
// slowly.
constexpr std::chrono::seconds kOpeningWait{1};
constexpr int kOpeningLookMs = 20;
constexpr int kPipeWaitMs = 10'000;
constexpr std::size_t kMostNames = 1000;
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";  // written by Windows editors

Error TooLarge() {
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("the file has more than {}, the most that is read; check that it is the right file",
                  FormatBytes(kMaxFileBytes))};
}

bool IsNamed(int pipe) {
  struct statfs system {};
  return ::fstatfs(pipe, &system) == 0 && system.f_type != PIPEFS_MAGIC;
}

Status AwaitWriter(int fd) {
  pollfd ready{fd, POLLIN, 0};
  if (::poll(&ready, 1, kPipeWaitMs) != 0) return {};
  return Error{DTRUN_TIMEOUT, "nothing was written to this pipe for 10s; is its writer running?"};
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, open() would block on a named pipe that has no writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    const int number = errno;
    Error error = Error::System("cannot open the file", number);
    if (number == ENOENT) error.code = DTRUN_NOT_FOUND;
    if (number == EACCES) error.text += "; make it and its folders readable for this user";
    return error;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::System("cannot read the file", errno);
  if (S_ISDIR(info.st_mode)) {
    return Error{DTRUN_INVALID_ARGUMENT, "this is a folder; give the path of a file in it"};
  }
  if (S_ISREG(info.st_mode) && info.st_size > static_cast<off_t>(kMaxFileBytes)) {
    return TooLarge();
  }
  // A named pipe reads as empty until its writer has opened it.
  bool opened = !S_ISFIFO(info.st_mode) || !IsNamed(fd.get());
  const auto patience = std::chrono::steady_clock::now() + kOpeningWait;
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), part, sizeof part);
    if (got == 0 && !opened) {
      pollfd ready{fd.get(), POLLIN, 0};
      opened = ::poll(&ready, 1, kOpeningLookMs) > 0;
      if (!opened && std::chrono::steady_clock::now() > patience)
        return Error{DTRUN_TIMEOUT,
                     "this is a pipe without a writer; start its writer first, or name a file"};
      continue;
    }
    if (got == 0) return text.starts_with(kUtf8Mark) ? text.substr(kUtf8Mark.size()) : text;
    if (got > 0) {
      text.append(part, static_cast<std::size_t>(got));
      if (text.size() > kMaxFileBytes) return TooLarge();
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Error::System("cannot read the file", errno);
    if (Status come = AwaitWriter(fd.get()); !come) return come.error();
  }
}

std::string WhereElse(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path whole = std::filesystem::absolute(path, failure).lexically_normal();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(whole.parent_path(), failure), end;
       !failure && entry != end && names.size() < kMostNames; entry.increment(failure)) {
    if (entry->path().extension() == ".toml") names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  const std::string name = path.filename().string();
  const auto nearest = Nearest(name, names);
  if (nearest && *nearest != name) {
    return fmt::format("did you mean '{}'?", (path.parent_path() / *nearest).string());
  }
  const std::string looked =
      path.is_absolute() ? "" : fmt::format("it was looked for at '{}'; ", whole.string());
  return looked + fmt::format("'dtrun config init {}' writes a new one", path.string());
}

}  // namespace dtrun::spec

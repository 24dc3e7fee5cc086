#include "core/base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/own_file.h"

namespace dtrun {
namespace {

// An error ends the read; the bytes read so far are returned.
std::string ReadFirst(const UniqueFd& opened, std::size_t most) {
  std::string text;
  std::array<char, 65536> bytes;
  while (text.size() < most) {
    const ssize_t size = ::read(opened.get(), bytes.data(), std::min(bytes.size(), most - text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

Result<UniqueFd> OpenForeignFile(const std::filesystem::path& file) {
  // It may lead to what its owner could not read.
  struct stat link {};
  if (::lstat(file.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && IsStranger(link.st_uid)) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "'{}' is a link of another user; name the file that it leads to", file.string());
  }
  UniqueFd opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  // open() fails with ENXIO for a socket or a device without a driver.
  if (!opened && (errno != ENXIO || ::stat(file.c_str(), &status) != 0)) {
    const int number = errno;
    Error error = Error::System(fmt::format("open '{}'", file.string()), number);
    if (number == ENOENT) error.code = DTRUN_NOT_FOUND;
    return error;
  }
  if (opened && ::fstat(opened.get(), &status) != 0)
    return Error::System(fmt::format("read '{}'", file.string()), errno);
  if (S_ISREG(status.st_mode)) return opened;
  return Error::Of(DTRUN_FAILED_PRECONDITION, "'{}' is {}, where an ordinary file is expected", file.string(),
                   KindOf(status.st_mode));
}

Result<std::string> ReadWholeForeignFile(const std::filesystem::path& file, std::size_t most) {
  const Result<UniqueFd> opened = OpenForeignFile(file);
  if (!opened) return opened.error();
  struct stat status {};
  // Check the size first: a sparse file costs its writer nothing.
  const bool fits = ::fstat(opened->get(), &status) == 0 && static_cast<std::size_t>(status.st_size) <= most;
  std::string text = fits ? ReadFirst(*opened, most + 1) : std::string();
  if (fits && text.size() <= most) return text;
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' is larger than {}, the most that dtrun reads of it",
                   file.string(), FormatBytes(most));
}

std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most) {
  const Result<UniqueFd> opened = OpenForeignFile(file);
  return opened ? ReadFirst(*opened, most) : "";
}

std::string ReadKernelFile(const std::string& path) {
  return ReadFirst(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), std::string::npos);
}

std::string FirstLineOf(const std::string& path) {
  std::string content = ReadKernelFile(path);
  content.resize(std::min(content.find('\n'), content.size()));
  return content;
}

std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::ranges::sort(entries);
  return entries;
}

}  // namespace dtrun

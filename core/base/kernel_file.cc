#include "core/base/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/fd.h"

namespace dtrun {

std::string ReadKernelFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  std::array<char, 4096> piece;
  for (ssize_t size = 1; file && size > 0;) {
    size = ::read(file.get(), piece.data(), piece.size());
    if (size > 0) content.append(piece.data(), static_cast<std::size_t>(size));
    if (size < 0 && errno == EINTR) size = 1;
  }
  return content;
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

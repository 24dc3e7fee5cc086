#include "core/base/foreign_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/fd.h"

namespace dtrun {

std::string ReadForeignFile(const std::filesystem::path& file, std::size_t most) {
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
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

}  // namespace dtrun

#include "core/base/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/fd.h"

namespace dtrun {

std::string ReadProcFile(const std::string& path) {
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

}  // namespace dtrun

#include "core/output/bounded_write.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace dtrun::output {

bool WriteWithin(int fd, std::string_view text, std::chrono::milliseconds limit) {
  // A descriptor that polls as writable takes at least this much; a terminal may not have room for more.
  constexpr std::size_t kPiece = 256;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!text.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd room{fd, POLLOUT, 0};
    const int ready = ::poll(&room, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t written = ::write(fd, text.data(), std::min(text.size(), kPiece));
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
  }
  return true;
}

}  // namespace dtrun::output

#include "core/output/file_write.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace dtrun::output {
namespace {

// Blocks SIGXFSZ in this thread. Leaves the process's handlers alone, because ranks inherit ignored signals.
class SizeSignalHeld {
 public:
  SizeSignalHeld() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~SizeSignalHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;

  void Consume() {
    const timespec now{};
    while (sigtimedwait(&signals_, nullptr, &now) < 0 && errno == EINTR) {
    }
  }

 private:
  sigset_t signals_;
  sigset_t before_;
};

template <class Write>
int All(std::string_view bytes, Write write) {
  SizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t written = write(bytes);
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0) {
      return EIO;
    } else if (errno != EINTR) {
      const int number = errno;
      if (number == EFBIG) held.Consume();
      return number;
    }
  }
  return 0;
}

}  // namespace

int WriteAll(int fd, std::string_view bytes) {
  return All(bytes, [fd](std::string_view rest) { return ::write(fd, rest.data(), rest.size()); });
}

int WriteAllAt(int fd, std::string_view bytes, off_t offset) {
  return All(bytes, [fd, offset, size = bytes.size()](std::string_view rest) {
    return ::pwrite(fd, rest.data(), rest.size(), offset + static_cast<off_t>(size - rest.size()));
  });
}

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

#include "core/output/file_write.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

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

}  // namespace dtrun::output

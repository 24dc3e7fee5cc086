#include "core/output/sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace dtrun::output {
namespace {

// The longest delay before a stop is noticed while the reader takes nothing.
constexpr int kPollMs = 50;
// On Linux a terminal that polls as writable has at least this much room in practice. Otherwise the write
// blocks, as in any program.
constexpr std::size_t kTerminalPiece = 256;

}  // namespace

Sink::Sink(int fd) : fd_(fd), terminal_(isatty(fd) == 1) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return;  // Write will report the error
  if (S_ISSOCK(info.st_mode)) {
    kind_ = Kind::kSocket;
  } else if (S_ISFIFO(info.st_mode) || terminal_) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_ = UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    kind_ = own_ ? Kind::kOwn : Kind::kBorrowed;
    piece_ = terminal_ ? kTerminalPiece : PIPE_BUF;
  }
}

int Sink::columns() const {
  winsize size{};
  if (ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

long Sink::TryWrite(std::string_view bytes) const {
  switch (kind_) {
    case Kind::kOwn: return ::write(own_.get(), bytes.data(), bytes.size());
    case Kind::kSocket: return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::kBorrowed: return ::write(fd_, bytes.data(), std::min(bytes.size(), piece_));
    case Kind::kPlain: break;
  }
  return ::write(fd_, bytes.data(), bytes.size());
}

int Sink::Write(std::string_view* bytes, const std::atomic<bool>& stop,
                std::atomic<Clock::rep>* taken) const {
  bool poll_first = kind_ == Kind::kBorrowed;
  while (!bytes->empty()) {
    if (stop) return ECANCELED;
    if (poll_first) {
      pollfd room{kind_ == Kind::kOwn ? own_.get() : fd_, POLLOUT, 0};
      if (poll(&room, 1, kPollMs) <= 0) continue;
    }
    const long written = TryWrite(*bytes);
    if (written >= 0) {
      bytes->remove_prefix(static_cast<std::size_t>(written));
      *taken = Clock::now().time_since_epoch().count();
      poll_first = kind_ == Kind::kBorrowed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      poll_first = true;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace dtrun::output

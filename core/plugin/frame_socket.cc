#include "core/plugin/frame_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace dtrun::plugin {
namespace {

int RemainingMs(std::optional<FrameSocket::Time> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

}  // namespace

bool DrainTail(int fd, std::string* tail) {
  char chunk[4096];
  for (;;) {
    const ssize_t bytes = ::read(fd, chunk, sizeof chunk);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (bytes == 0) return false;
    tail->append(chunk, static_cast<std::size_t>(bytes));
    if (tail->size() > FrameSocket::kTailBytes) tail->erase(0, tail->size() - FrameSocket::kTailBytes);
  }
}

Status FrameSocket::Send(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      return Error{DTRUN_REMOTE_FAILURE, "the other end of the probe is gone"};
    }
    if (sent < 0) return Error::System("send to the probe", errno);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::optional<std::string>> FrameSocket::Receive(std::optional<Time> deadline, int other,
                                                        std::string* tail) {
  for (;;) {
    const auto frame = frames_.Next();
    if (!frame) return Error{DTRUN_INTERNAL, "the probe's answer is broken: " + frame.error().text};
    if (*frame) return std::optional(std::string(**frame));

    pollfd fds[] = {{fd_.get(), POLLIN, 0}, {other, POLLIN, 0}};
    const int ready = ::poll(fds, 2, RemainingMs(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Error::System("poll the probe", errno);
    if (ready == 0) return Error{DTRUN_TIMEOUT, "no answer in time"};
    if (fds[1].revents != 0 && !DrainTail(other, tail)) other = -1;
    if (fds[0].revents == 0) continue;

    char chunk[16384];
    const ssize_t bytes = ::recv(fd_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0 && errno != ECONNRESET) return Error::System("read from the probe", errno);
    if (bytes <= 0) return std::optional<std::string>();
    frames_.Append({chunk, static_cast<std::size_t>(bytes)});
  }
}

}  // namespace dtrun::plugin

#include "graceful_close.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dtrun::gloo_plugin {
namespace {

thread_local GracefulClose* current = nullptr;

// Reads what has come. False: the peer has closed, or the connection broke.
bool IsOpen(int socket) {
  std::array<char, 4096> unread;
  ssize_t size = 0;
  do {
    size = ::recv(socket, unread.data(), unread.size(), MSG_DONTWAIT);
  } while (size > 0 || (size < 0 && errno == EINTR));
  return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

GracefulClose::GracefulClose(std::chrono::steady_clock::time_point until) : until_(until) { current = this; }

GracefulClose::~GracefulClose() {
  current = nullptr;
  std::vector<pollfd> open;
  for (const int socket : sockets_) open.push_back({socket, POLLIN, 0});
  for (;;) {
    std::erase_if(open, [](const pollfd& one) { return !IsOpen(one.fd); });
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now()).count();
    if (open.empty() || left <= 0) break;
    ::poll(open.data(), open.size(), static_cast<int>(left));
  }
  for (const int socket : sockets_) ::close(socket);
}

GracefulClose* GracefulClose::Current() { return current; }

void GracefulClose::Take(int socket) {
  ::shutdown(socket, SHUT_WR);
  sockets_.push_back(socket);
}

}  // namespace dtrun::gloo_plugin

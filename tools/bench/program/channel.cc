#include "tools/bench/program/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace dtrun::bench {

Result<Channel> Channel::Connect(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.size() >= sizeof address.sun_path) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("socket path '{}' is too long", path)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error::System(fmt::format("connect to '{}'", path), errno);
  }
  return Channel(std::move(fd));
}

bool Channel::Send(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool Channel::Fill() {
  char buffer[4096];
  ssize_t n = 0;
  do {
    n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  unread_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

std::optional<std::string> Channel::Next() {
  const std::size_t end = unread_.find('\n');
  if (end == unread_.npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::optional<std::string> Channel::Receive() {
  for (;;) {
    if (auto line = Next()) return line;
    if (!Fill()) return std::nullopt;
  }
}

}  // namespace dtrun::bench

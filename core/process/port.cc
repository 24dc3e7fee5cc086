#include "core/process/port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "core/base/endpoint.h"
#include "core/base/port_user.h"

namespace dtrun::process {
namespace {

// A socket bound to `port` on every address, both families where the host has IPv6; or the errno.
struct Bound {
  UniqueFd socket;
  int number = 0;
};
Bound Bind(int port, bool reuse) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  Bound bound;
  for (int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int off = 0, on = 1;
    const auto* address = family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&any6)
                                             : reinterpret_cast<const sockaddr*>(&any4);
    const socklen_t size = family == AF_INET6 ? sizeof any6 : sizeof any4;
    if (socket && reuse) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket && family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    bound.number = socket ? BindInRange(socket.get(), address, size) : errno;
    if (bound.number == 0) {
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      return {std::move(socket), 0};
    }
    if (bound.number != EAFNOSUPPORT && bound.number != EADDRNOTAVAIL) break;
  }
  return bound;
}

}  // namespace

Result<HeldPort> HeldPort::Hold(int wanted) {
  // Try without SO_REUSEADDR first: with it, two jobs could hold the same port unnoticed.
  Bound bound = Bind(wanted, false);
  if (bound.number == EADDRINUSE && wanted != 0) {
    if (!OnlyFading(wanted)) return PortInUse(wanted);
    bound = Bind(wanted, true);
    if (bound.number == EADDRINUSE) return PortInUse(wanted);
  }
  if (!bound.socket) {
    Error error = wanted == 0 ? NoFreePort("cannot find a free port", bound.number)
                              : Error::System(fmt::format("cannot hold port {}", wanted), bound.number);
    if (bound.number == EACCES) error.text += "; only root can use ports below 1024, so choose a higher one";
    return error;
  }
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (::getsockname(bound.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Error::System("read the number of the held port", errno);
  }
  return HeldPort(std::move(bound.socket), ntohs(address.sin6_port));  // same offset in sockaddr_in
}

Result<UniqueFd> HeldPort::At(const std::string& address) const {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(number_).c_str(), &hints, &found) != 0)
    return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' is not a numeric address", address);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0)
    return Error::System(fmt::format("cannot listen at {} port {}", address, number_), errno);
  return socket;
}

}  // namespace dtrun::process

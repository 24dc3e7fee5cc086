// libglpH.so.0: three functions that the private copy of Gloo calls here. private_gloo.cmake has renamed its
// bind(2) to glpb and its close(2) to glpcl; tcp::Address::str() the dynamic linker finds here before the
// copy's own. Any thread.
#include <gloo/transport/tcp/address.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "graceful_close.h"
#include "port_range.h"

// As bind(2); a port that Gloo leaves to the system is one of DTRUN_PORT_RANGE, where that is set.
extern "C" __attribute__((visibility("default"))) int glpb(int socket, const sockaddr* address,
                                                           socklen_t size) {
  const auto ports = dtrun::gloo_plugin::ReadPortRange(std::getenv("DTRUN_PORT_RANGE"));
  const bool inet = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  sockaddr_storage wanted{};
  if (!ports || !inet || size > sizeof wanted) return ::bind(socket, address, size);
  std::memcpy(&wanted, address, size);
  auto* const port = &reinterpret_cast<sockaddr_in*>(&wanted)->sin_port;  // at the same place in IPv6
  if (*port != 0) return ::bind(socket, address, size);
  const int count = ports->last - ports->first + 1;
  const int begin = dtrun::gloo_plugin::FirstOfRange(count);
  for (int i = 0; i < count; ++i) {
    *port = htons(static_cast<in_port_t>(ports->first + (begin + i) % count));
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&wanted), size) == 0) return 0;
    if (errno != EADDRINUSE && errno != EACCES) return -1;
  }
  return -1;
}

// As close(2), or when the peer has read everything, where the thread closes so.
extern "C" __attribute__((visibility("default"))) int glpcl(int descriptor) {
  auto* const graceful = dtrun::gloo_plugin::GracefulClose::Current();
  if (graceful == nullptr) return ::close(descriptor);
  graceful->Take(descriptor);
  return 0;
}

namespace gloo::transport::tcp {

// Gloo's own prints the port in the order of the network's bytes, which no tool shows it in.
__attribute__((visibility("default"))) std::string Address::str() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&impl_.ss), sizeof impl_.ss, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "[none]";
  return "[" + std::string(host) + "]:" + port;
}

}  // namespace gloo::transport::tcp

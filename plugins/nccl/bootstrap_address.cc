#include "bootstrap_address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

namespace dtrun::nccl_plugin {

std::string BootstrapAddress::Text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id) {
  constexpr std::size_t kMagicBytes = 8;
  sockaddr_in6 raw;  // the larger one
  static_assert(kMagicBytes + sizeof raw <= sizeof id.internal);
  std::memcpy(&raw, id.internal + kMagicBytes, sizeof raw);
  if (raw.sin6_family != AF_INET && raw.sin6_family != AF_INET6) return std::nullopt;
  const bool ipv6 = raw.sin6_family == AF_INET6;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&raw), ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in),
                  host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  const std::string text(host);
  return BootstrapAddress{text.substr(0, text.find('%')), std::atoi(port),
                          ipv6 ? text == "::1" : text.rfind("127.", 0) == 0};
}

}  // namespace dtrun::nccl_plugin

#include "bootstrap_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace dtrun::nccl_plugin {
namespace {

constexpr std::size_t kMagicBytes = 8;

template <class Address>
Address Read(const nccl::UniqueId& id) {
  static_assert(kMagicBytes + sizeof(Address) <= sizeof id.internal);
  Address address;
  std::memcpy(&address, id.internal + kMagicBytes, sizeof address);
  return address;
}

}  // namespace

std::string BootstrapAddress::Text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id) {
  char text[INET6_ADDRSTRLEN] = {};
  BootstrapAddress address;
  switch (Read<sockaddr_in>(id).sin_family) {
    case AF_INET: {
      const auto raw = Read<sockaddr_in>(id);
      inet_ntop(AF_INET, &raw.sin_addr, text, sizeof text);
      address.port = ntohs(raw.sin_port);
      address.loopback = (ntohl(raw.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
      break;
    }
    case AF_INET6: {
      const auto raw = Read<sockaddr_in6>(id);
      inet_ntop(AF_INET6, &raw.sin6_addr, text, sizeof text);
      address.port = ntohs(raw.sin6_port);
      address.loopback = IN6_IS_ADDR_LOOPBACK(&raw.sin6_addr);
      break;
    }
    default: return std::nullopt;
  }
  address.host = text;
  return address;
}

}  // namespace dtrun::nccl_plugin

#include "tools/dtrun/torchrun/this_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <set>

namespace dtrun::torchrun {
namespace {

// The address without its port, or empty.
std::string Text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address != nullptr && address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr || ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

std::set<std::string> OwnAddresses() {
  std::set<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (const std::string text = Text(entry->ifa_addr); !text.empty()) addresses.insert(text);
  }
  return addresses;
}

bool IsLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace

bool IsThisHost(const std::string& host) {
  std::array<char, 256> name{};
  if (host == "localhost") return true;
  if (::gethostname(name.data(), name.size() - 1) == 0 && host == name.data()) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(first, &::freeaddrinfo);
  const std::set<std::string> own = OwnAddresses();
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    const std::string address = Text(entry->ai_addr);
    if (IsLoopback(address) || own.contains(address)) return true;
  }
  return false;
}

}  // namespace dtrun::torchrun

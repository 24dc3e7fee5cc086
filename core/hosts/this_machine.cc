#include "core/hosts/this_machine.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/fd.h"
#include "core/base/read_file.h"

namespace dtrun::hosts {
namespace {

std::string Numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text.data();
}

struct InterfaceAddress {
  std::string text;
  bool loopback = false;
  bool link_local = false;
};

std::vector<InterfaceAddress> AllAddresses() {
  std::vector<InterfaceAddress> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress address;
    address.text = Numeric(at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    address.loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
    if (family == AF_INET6) {
      address.link_local =
          IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr);
    }
    if (!address.text.empty()) out.push_back(std::move(address));
  }
  return out;
}

}  // namespace

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string MachineIdentity() {
  const std::string boot = FirstLineOf("/proc/sys/kernel/random/boot_id");
  struct stat info {};
  const bool known = ::stat("/proc/self/ns/net", &info) == 0;
  return fmt::format("{} {}", boot, known ? std::to_string(info.st_ino) : "");
}

bool IsThisMachine(const std::string& host) {
  const std::string name = host.substr(host.find('@') + 1);
  const std::string own = HostName();
  const bool numeric =
      name.find_first_not_of("0123456789.") == std::string::npos || name.find(':') != std::string::npos;
  if (name == "localhost" || name == own) return true;
  if (numeric) return IsOwnAddress(name);
  return name == own.substr(0, own.find('.')) || name.substr(0, name.find('.')) == own;
}

bool IsOwnAddress(const std::string& text) {
  const auto addresses = AllAddresses();
  return std::ranges::any_of(addresses, [&](const InterfaceAddress& one) { return one.text == text; });
}

bool LeadsHere(const std::string& host) {
  if (IsThisMachine(host)) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    // All of 127.0.0.0/8 is this machine, though lo lists only one address of it.
    const std::string address = Numeric(at->ai_addr, at->ai_addrlen);
    if (address.starts_with("127.") || IsThisMachine(address)) return true;
  }
  return false;
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> out;
  for (const InterfaceAddress& address : AllAddresses()) {
    if (!address.loopback && !address.link_local) out.push_back(address.text);
  }
  return out;
}

std::string AddressTowards(const std::string& peer) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  // Any port: connecting a datagram socket sends nothing.
  if (::getaddrinfo(peer.c_str(), "9", &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const UniqueFd socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  return Numeric(reinterpret_cast<const sockaddr*>(&own), size);
}

}  // namespace dtrun::hosts

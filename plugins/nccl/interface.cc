#include "interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/subnet.hpp"

namespace dtrun::nccl_plugin {
namespace {

std::string NumericAddress(const sockaddr* address) {
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return std::string(text).substr(0, std::string(text).find('%'));
}

}  // namespace

std::vector<Interface> ListInterfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) {
    throw sdk::Failure(DTRUN_SYSTEM, std::string("cannot list network interfaces: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(raw, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
    all.push_back({entry->ifa_name, NumericAddress(entry->ifa_addr)});
  }
  return all;
}

Interface FindInterface(const std::vector<Interface>& all, const std::string& wanted) {
  const std::optional<sdk::Subnet> network = sdk::Subnet::Parse(wanted);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) {
    return network ? network->Has(one.address) : one.name == wanted || one.address == wanted;
  });
  if (found != all.end()) return *found;
  std::string list;
  for (const Interface& one : all) list.append(list.empty() ? "" : ", ").append(one.Text());
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                     "backend.options.interface: '" + wanted +
                         "' is neither name, address nor network of a running interface; "
                         "this host has " +
                         (list.empty() ? "none" : list) +
                         "; for several hosts name a network that holds an address of "
                         "each, such as \"10.0.0.0/16\", or leave it out and use "
                         "network.interface_on");
}

std::optional<Interface> FindByAddress(const std::vector<Interface>& all, const std::string& address) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Interface& one) { return one.address == address; });
  if (found == all.end()) return std::nullopt;
  return *found;
}

}  // namespace dtrun::nccl_plugin

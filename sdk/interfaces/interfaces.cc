#include "dtrun/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "subnet.h"

namespace dtrun::interfaces {
namespace {

using sdk::Failure;

// The numeric spelling that the system uses, so that "::0001" equals "::1"; empty when
// `text` is no address.
std::string Canonical(const std::string& text) {
  const std::string host = text.substr(0, text.find('%'));
  const std::string scope = text.substr(host.size());
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> out{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, host.c_str(), bytes.data()) == 1) {
      return inet_ntop(family, bytes.data(), out.data(), out.size()) + scope;
    }
  }
  return {};
}

std::size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

std::string Listing(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& one : all) {
    if (!text.empty()) text += ", ";
    text += one.Text();
    if (!one.running) text += " (down)";
  }
  return text.empty() ? "none" : text;
}

std::string NearestName(const std::vector<Interface>& all, const std::string& wanted) {
  std::size_t best = 3;
  std::string name;
  for (const Interface& one : all) {
    const std::size_t distance = Distance(one.name, wanted);
    if (distance < best && distance < wanted.size()) {
      best = distance;
      name = one.name;
    }
  }
  return name;
}

bool LinkLocal(const Interface& one) { return one.address.rfind("fe80:", 0) == 0; }

// The best address of those that `matches` accepts: running, IPv4 first, link-local last.
template <class Matches>
const Interface* Best(const std::vector<Interface>& all, Matches&& matches) {
  const Interface* best = nullptr;
  const auto rank = [](const Interface& one) { return (one.ipv6 ? 1 : 0) + (LinkLocal(one) ? 2 : 0); };
  for (const Interface& one : all) {
    if (!one.running || !matches(one)) continue;
    if (best == nullptr || rank(one) < rank(*best)) best = &one;
  }
  return best;
}

}  // namespace

std::vector<Interface> List() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw Failure(DTRUN_SYSTEM, std::string("list network interfaces: ") + std::strerror(errno))
        .Vendor("errno", errno);
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> host{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    all.push_back({one->ifa_name, host.data(), (one->ifa_flags & IFF_LOOPBACK) != 0,
                   (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0,
                   family == AF_INET6});
  }
  return all;
}

std::vector<std::string> DefaultRoutes() {
  std::vector<std::pair<unsigned long, std::string>> routes;  // metric, name
  std::string line;
  std::ifstream v4("/proc/net/route");
  while (std::getline(v4, line)) {
    std::istringstream fields(line);
    std::string name, destination, gateway, flags, references, use, metric, mask;
    fields >> name >> destination >> gateway >> flags >> references >> use >> metric >> mask;
    if (destination == "00000000" && mask == "00000000") routes.emplace_back(std::stoul(metric), name);
  }
  std::stable_sort(routes.begin(), routes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::ifstream v6("/proc/net/ipv6_route");
  while (std::getline(v6, line)) {
    std::istringstream fields(line);
    std::string destination, prefix, source, source_prefix, hop, metric, references, use, flags, name;
    fields >> destination >> prefix >> source >> source_prefix >> hop >> metric >> references >> use >>
        flags >> name;
    if (prefix == "00" && name != "lo" && destination.find_first_not_of('0') == std::string::npos) {
      routes.emplace_back(0, name);
    }
  }
  std::vector<std::string> names;
  for (const auto& [metric, name] : routes) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Interface Find(const std::vector<Interface>& all, const std::string& wanted) {
  const std::string address = Canonical(wanted);
  const std::optional<Subnet> network = Subnet::Parse(wanted);
  const auto is = [&](const Interface& one) {
    if (network) return network->Has(one.address);
    return address.empty() ? one.name == wanted : one.address == address;
  };
  const Interface* found = Best(all, is);
  if (found != nullptr) return *found;
  std::string text = "interface '" + wanted + "' ";
  const bool known = std::any_of(all.begin(), all.end(), is);
  if (known) {
    text += "of this host is down";
  } else {
    text += network           ? "is a network in which this host has no address"
            : address.empty() ? "is not an interface with an address on this host"
                              : "is not an address of this host";
  }
  text += "; it has " + Listing(all);
  if (!known && !address.empty()) {
    text +=
        "; for several hosts set backend.options.interface to a network that holds an address of each, such "
        "as \"10.0.0.0/16\", or leave it out and use network.interface_on";
    throw Failure(DTRUN_INVALID_ARGUMENT, text);
  }
  const std::string nearest = known ? "" : NearestName(all, wanted);
  text += nearest.empty() ? "; set backend.options.interface to one of them"
                          : "; did you mean '" + nearest + "'?";
  throw Failure(DTRUN_INVALID_ARGUMENT, text);
}

Interface Choose(const std::vector<Interface>& all, const std::vector<std::string>& default_routes,
                 const std::optional<std::string>& wanted, int host_count) {
  if (wanted) return Find(all, *wanted);
  if (host_count <= 1) {
    if (const Interface* found = Best(all, [](const Interface& one) { return one.loopback; })) return *found;
  }
  for (const std::string& name : default_routes) {
    const auto matches = [&](const Interface& one) { return one.name == name && !LinkLocal(one); };
    if (const Interface* found = Best(all, matches)) return *found;
  }
  // The kernel's order, not the best address of all: the first interface wins.
  for (const Interface& one : all) {
    if (!one.running || one.loopback || LinkLocal(one)) continue;
    return *Best(all, [&](const Interface& other) { return other.name == one.name; });
  }
  throw Failure(DTRUN_FAILED_PRECONDITION,
                "this host has no running network interface that reaches other hosts; it has " +
                    Listing(all) + "; set backend.options.interface");
}

std::optional<Interface> FindByAddress(const std::vector<Interface>& all, const std::string& address) {
  for (const Interface& one : all) {
    if (one.address.substr(0, one.address.find('%')) == address) return one;
  }
  return std::nullopt;
}

}  // namespace dtrun::interfaces

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <future>
#include <memory>

#include "core/base/fd.h"
#include "core/base/port_user.h"
#include "core/environments/libraries.h"
#include "core/hosts/this_machine.h"
#include "core/network/interface.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

struct Resolved {
  std::string address;  // numeric, the first address
  bool loopback = false;
  std::string reverse;  // name of the address; empty: none
  std::string failure;  // if set, nothing else is
};

Resolved Resolve(const std::string& name) {
  addrinfo hints{}, *raw = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int number = ::getaddrinfo(name.c_str(), nullptr, &hints, &raw);
  if (number != 0) return {{}, false, {}, ::gai_strerror(number)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(raw, ::freeaddrinfo);
  Resolved resolved;
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
    resolved.address = text;
  resolved.loopback = resolved.address.starts_with("127.") || resolved.address == "::1";
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NAMEREQD) == 0)
    resolved.reverse = text;
  return resolved;
}

// Resolves a few names in parallel: a silent name server costs its timeout only once.
std::vector<Resolved> ResolveAll(const std::vector<std::string>& hosts) {
  constexpr std::size_t kAtOnce = 16;
  std::vector<Resolved> resolved(hosts.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < hosts.size(); i = next++) {
      resolved[i] = Resolve(hosts[i].substr(hosts[i].find('@') + 1));
    }
  };
  std::vector<std::future<void>> workers;
  for (std::size_t i = 1; i < std::min(kAtOnce, hosts.size()); ++i) {
    workers.push_back(std::async(std::launch::async | std::launch::deferred, work));
  }
  work();
  for (const auto& worker : workers) worker.wait();
  return resolved;
}

// Whether no interface here has the address: a connection to it ends on another host, or nowhere.
bool Foreign(const std::string& address) {
  error_code error;
  const Ip ip = asio::ip::make_address(address, error);
  const auto interfaces = network::ReadInterfaces();
  if (error || !interfaces) return false;
  return std::ranges::none_of(*interfaces, [&](const network::Interface& one) {
    return std::ranges::find(one.addresses, ip, &network::Address::ip) != one.addresses.end();
  });
}

void CheckOwnName(const Request& request, Checks* to) {
  const std::string name = hosts::HostName();
  const Resolved own = Resolve(name);
  if (!own.failure.empty()) {
    to->push_back(
        {"names", Level::kProblem, fmt::format("its own name '{}' does not resolve: {}", name, own.failure),
         fmt::format("put '{}' into /etc/hosts or DNS; {} look it up", name, environments::kGoByName)});
  } else if (own.loopback && request.host_count > 1) {
    to->push_back(
        {"names", Level::kWarning,
         fmt::format("its own name '{}' resolves to {}, which no other host can reach", name, own.address),
         fmt::format("libraries that use the name ({}) advertise that address unless network.interface gives "
                     "them another: give the name the host's own address in /etc/hosts",
                     environments::kGoByName)});
  } else if (!own.loopback && Foreign(own.address)) {
    to->push_back(
        {"names", Level::kWarning,
         fmt::format("its own name '{}' resolves to {}, which none of its interfaces has", name, own.address),
         fmt::format(
             "correct '{}' in /etc/hosts or DNS: libraries that use the name ({}) cannot listen there", name,
             environments::kGoByName)});
  } else {
    to->push_back({"names", Level::kOk, fmt::format("its own name '{}' resolves to {}", name, own.address)});
  }
}

}  // namespace

void CheckNames(const Request& request, Checks* to) {
  const std::vector<Resolved> others = ResolveAll(request.host_names);
  CheckOwnName(request, to);
  std::size_t good = 0;
  std::vector<std::string> unknown, failures;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::string& written = request.host_names[i];
    const std::string name = written.substr(written.find('@') + 1);
    const Resolved& other = others[i];
    if (!other.failure.empty()) {
      unknown.push_back("'" + name + "'");
      if (std::ranges::find(failures, other.failure) == failures.end()) failures.push_back(other.failure);
    } else if (other.reverse.empty() && other.address != name && !other.loopback) {
      to->push_back({"names", Level::kWarning,
                     fmt::format("{} ('{}') does not resolve to a name", other.address, name),
                     "add the reverse (PTR) entry: MPI and Kerberos look up addresses"});
    } else {
      ++good;
    }
  }
  if (!unknown.empty()) {
    const bool one = unknown.size() == 1;
    to->push_back({"names", Level::kWarning,
                   fmt::format("{} {} not resolve: {}", fmt::join(unknown, ", "), one ? "does" : "do",
                               fmt::join(failures, ", ")),
                   fmt::format("put {} into /etc/hosts or DNS of all hosts; an alias in ~/.ssh/config works "
                               "for ssh only",
                               one ? "it" : "them")});
  }
  if (good > 0) {
    to->push_back({"names", Level::kOk,
                   fmt::format("{} of {} hosts resolve, forward and back", good, request.host_names.size())});
  }
}

void CheckPorts(const Request& request, Checks* to) {
  if (request.master_port == 0 || request.host != 0) return;
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd fallback(socket ? -1 : ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int bound = -1;
  if (socket) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(request.master_port));
    bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(request.master_port));
    bound = ::bind(fallback.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  if (bound == 0 || (errno == EADDRINUSE && OnlyFading(request.master_port))) {
    to->push_back({"ports", Level::kOk, fmt::format("port {} is free", request.master_port)});
  } else if (errno == EADDRINUSE) {
    to->push_back({"ports", Level::kProblem, PortInUse(request.master_port).text,
                   "leave job.master_port unset: dtrun then takes any free one"});
  } else {
    to->push_back({"ports", Level::kProblem,
                   Error::System(fmt::format("port {} cannot be bound", request.master_port), errno).text,
                   "leave job.master_port unset: dtrun then takes any free one"});
  }
}

}  // namespace dtrun::preflight

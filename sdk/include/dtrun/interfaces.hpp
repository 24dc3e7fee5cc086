// interfaces.hpp - the network interfaces of this host, and the one that a plugin is to use.
//
// A static library with hidden symbols, `dtrun::interfaces`. Pure functions over a list of
// interfaces, and functions that read that list from the system. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::interfaces {

// One address of one network interface.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // numeric; link-local IPv6 with its scope: "fe80::1%eth0"
  bool loopback = false;
  bool running = false;
  bool ipv6 = false;

  std::string Text() const { return name + " " + address; }
};

// The addresses of this host in the kernel's order.
std::vector<Interface> List();

// Names of the interfaces that hold a default route, best first; may be empty.
std::vector<std::string> DefaultRoutes();

// `wanted` is the option `interface`: the name or an address of an interface, or a network ("10.0.0.0/16")
// that holds one. Throws sdk::Failure with the host's list when no such interface is running.
Interface Find(const std::vector<Interface>& all, const std::string& wanted);

// As Find. Unset: loopback when the job has one host; otherwise the interface of the default route, else the
// first running one that is not loopback.
Interface Choose(const std::vector<Interface>& all, const std::vector<std::string>& default_routes,
                 const std::optional<std::string>& wanted, int host_count);

// The interface that has `address`, given without a scope; nullopt when there is none.
std::optional<Interface> FindByAddress(const std::vector<Interface>& all, const std::string& address);

}  // namespace dtrun::interfaces

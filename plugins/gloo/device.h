// Which network interface carries the bytes of this host.
//
// Pure functions over a list of interfaces, and the functions that read that list from the
// system. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::gloo_plugin {

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
std::vector<Interface> ListInterfaces();

// Names of the interfaces that hold a default route, best first; may be empty.
std::vector<std::string> DefaultRouteInterfaces();

// `wanted` is the name or an address of an interface, or a network ("10.0.0.0/16") that holds one. Unset:
// loopback when the job has one host; otherwise the interface of the default route, else the first running
// one that is not loopback. Throws sdk::Failure with the host's list when there is no such interface.
Interface ChooseInterface(const std::vector<Interface>& all, const std::vector<std::string>& default_routes,
                          const std::optional<std::string>& wanted, int host_count);

// The address on `interface` at which a rank listens. The loopback network has 2^24 of them, so
// ranks of one host do not search for ports that others have left free.
std::string ListenAddress(const Interface& interface, int rank);

}  // namespace dtrun::gloo_plugin

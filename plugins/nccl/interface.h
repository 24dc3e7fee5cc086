// Network interfaces of this host by name and address, and the form in which NCCL wants one.
//
// Functions over a list, and one that reads that list from the system. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::nccl_plugin {

// One numeric address of one network interface.
struct Interface {
  std::string name;
  std::string address;

  std::string Text() const { return name + " " + address; }
};

// The addresses of the running interfaces, in the kernel's order.
std::vector<Interface> ListInterfaces();

// `wanted` is the option's value, the name or an address of an interface, or a network that holds one. Throws
// sdk::Failure with the host's list when there is no such interface.
Interface FindInterface(const std::vector<Interface>& all, const std::string& wanted);

// The one that holds `address`; nullopt when none does.
std::optional<Interface> FindByAddress(const std::vector<Interface>& all, const std::string& address);

// The value of NCCL_SOCKET_IFNAME that means exactly this one; "eth1" alone would also take
// eth10 and the VLANs on top of it.
inline std::string ExactName(const Interface& interface) { return "=" + interface.name; }

}  // namespace dtrun::nccl_plugin

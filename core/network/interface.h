// The network interfaces of this host, as reported by the kernel.
//
// Values; ReadInterfaces asks the system, the rest is pure. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/result.h"
#include "core/wire/limits.h"

namespace dtrun::network {

enum class Kind : std::uint8_t {  // KindText has them in this order
  kLoopback,
  kPhysical,  // has a bus address; includes cards of virtual machines
  kBond,
  kVlan,
  kBridge,
  kVeth,
  kTunnel,  // tun, tap, WireGuard, VXLAN and the like
  kVirtual  // any other software interface
};
const char* KindText(Kind kind);

struct Address {
  Ip ip;           // without a scope
  int prefix = 0;  // prefix length of its network

  bool link_local() const;
  std::string Text() const;  // "10.0.0.5/24"
  void Fields(auto& io) {
    std::string text = ip.to_string();
    io("ip", text, wire::kMostName);
    if (!io.kWrites) {
      error_code problem;
      ip = asio::ip::make_address(text, problem);
      if (problem) io.Fail("is not an IP address");
    }
    io("prefix", prefix, wire::Between{0, ip.is_v6() ? 128 : 32});
  }
};

// Whether `ip` is in the network of `prefix` bits around `network`.
bool InNetwork(const Ip& ip, const Ip& network, int prefix);

struct Interface {
  int index = 0;
  std::string name;
  std::vector<std::string> other_names =
      {};  // "altname" of `ip link`; only kernel interfaces know them, no library does
  Kind kind = Kind::kVirtual;
  bool up = false;       // administratively up
  bool carrier = false;  // has a link
  int mtu = 0;
  std::int64_t speed_mbps = 0;  // 0: not reported by the driver
  std::string rdma;             // "mlx5_0:1" when the same port does RDMA; else empty
  bool default_route = false;
  std::vector<Address> addresses;  // in the kernel's order
};

// "eth0 (10.0.0.5/24), eth1 (down), ...": for messages.
std::string ListText(const std::vector<Interface>& interfaces);

// Returns them in the order of their indices.
Result<std::vector<Interface>> ReadInterfaces();

// The kind of an interface from the kernel's type name and its bus address; both may be empty.
Kind KindOf(const std::string& type, bool loopback, const std::string& bus);

// Whether there is an RDMA card below `sys` ("/sys").
bool HasRdma(const std::string& sys);

// The active RDMA port of the interface `name` at the bus address `bus`, below `sys` ("/sys"); empty if there
// is none.
std::string RdmaPortOf(const std::string& sys, const std::string& name, const std::string& bus);

}  // namespace dtrun::network

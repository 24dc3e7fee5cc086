// Which interface every host of a job uses, and the table that explains the choice.
//
// Values; pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/network/evidence.h"

namespace dtrun::network {

// The network that a host uses between hosts, for code that does not need to know how it was found.
struct Network {
  std::string interface;
  std::string address;     // numeric
  int prefix = 0;          // prefix length of its network
  std::string rdma;        // "mlx5_0:1" when the same port does RDMA; else empty
  bool named = true;       // its first address, which a library uses if given the interface name
  bool asked_for = false;  // requested by network.interface
  bool host_has_rdma = false;

  bool ipv6() const { return address.find(':') != std::string::npos; }
  bool operator==(const Network&) const = default;
};

// Time spent on the search.
struct Effort {
  std::chrono::nanoseconds survey{}, connectivity{}, measurement{};
  std::chrono::nanoseconds total() const { return survey + connectivity + measurement; }
};

struct Decision {
  Evidence evidence;
  std::vector<Assignment> measured;  // not empty
  Assignment chosen;
  std::vector<bool> asked_for;  // by host: network.interface names its interface
  bool by_device = true;        // each connection was bound to one interface
  Effort effort;

  const Candidate& CandidateOf(std::size_t host) const;
};

// "9.4 Gbit/s"
std::string RateText(double bits_per_s);
// "9.8 %"
std::string LossText(double loss);

// By host.
std::vector<Network> NetworksOf(const Decision& decision);

// "eth1 on all 3 hosts: 10.5.0.0/24, 9.4 Gbit/s, 45 us round trip": for the run's header.
std::string Summary(const Decision& decision);
// "eth0: connected, 94 Mbit/s; docker0: left out, is a virtual bridge of this host": the other interfaces of
// the first host, shortened.
std::string OthersText(const Decision& decision);
// One row per candidate of each host: candidate, kind, address, verdict, reason.
std::string Table(const Decision& decision);
// The complete decision: network.json of the run directory.
std::string ToJson(const Decision& decision);

}  // namespace dtrun::network

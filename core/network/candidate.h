// One address of one interface that may carry a job between hosts, and what one host has of them.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/network/interface.h"

namespace dtrun::network {

struct Candidate {
  std::string interface;
  int index = 0;  // of the interface
  Kind kind = Kind::kVirtual;
  Address address;
  bool first_address = true;  // libraries that know only the name would take this address too
  bool of_ssh = false;        // where ssh has reached this host
  bool default_route = false;
  int mtu = 0;
  std::int64_t speed_mbps = 0;  // 0: the driver does not say
  std::string rdma;             // "mlx5_0:1", or empty
  std::uint16_t port = 0;       // where it listens while networks are being checked

  std::string Text() const;  // "eth0 10.0.0.5"
};

// An interface that is no candidate.
struct LeftOut {
  std::string interface;
  Kind kind = Kind::kVirtual;
  std::string address;  // its first one; may be empty
  std::string why;
};

// What a host offers.
struct Offer {
  std::vector<Candidate> candidates;
  std::vector<LeftOut> left_out;
  std::vector<std::string> unmatched;  // entries of the rule that chose nothing here
  bool has_rdma = false;               // the host has RDMA cards, whether they have an interface or not
};

}  // namespace dtrun::network

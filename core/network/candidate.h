// One address of one interface that may carry a job between hosts, and the list that a host offers.
//
// Values; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/network/interface.h"
#include "core/wire/limits.h"

namespace dtrun::network {

inline constexpr wire::Most kMostCandidates{1 << 14};  // of a host
inline constexpr wire::Between kKinds{Kind::kLoopback, Kind::kVirtual};

struct Candidate {
  std::string interface;
  int index = 0;  // of the interface
  Kind kind = Kind::kVirtual;
  Address address;
  bool first_address = true;  // libraries that get only the interface name use this address
  bool of_ssh = false;        // ssh has reached this host at this address
  bool default_route = false;
  int mtu = 0;
  std::int64_t speed_mbps = 0;  // 0: not reported by the driver
  std::string rdma;             // "mlx5_0:1", or empty
  std::uint16_t port = 0;       // its listening port during connectivity checks

  std::string Text() const;  // "eth0 10.0.0.5"
  void Fields(auto& io) {
    io("interface", interface, wire::kMostName, wire::kPrintable);
    io("index", index);
    io("kind", kind, kKinds);
    io("address", address);
    io("first_address", first_address);
    io("of_ssh", of_ssh);
    io("default_route", default_route);
    io("mtu", mtu, wire::kNotNegative);
    io("speed_mbps", speed_mbps, wire::Between{0, std::numeric_limits<int>::max()});
    io("rdma", rdma, wire::kMostName, wire::kPrintable);
    io("port", port);
  }
};

// An interface that is not a candidate.
struct LeftOut {
  std::string interface;
  Kind kind = Kind::kVirtual;
  std::string address;  // its first address; may be empty
  std::string why;
  void Fields(auto& io) {
    io("interface", interface, wire::kMostName, wire::kPrintable);
    io("kind", kind, kKinds);
    io("address", address, wire::kMostName, wire::kPrintable);
    io("why", why, wire::kMostName);
  }
};

// A host's candidates and other interfaces.
struct Offer {
  std::vector<Candidate> candidates;
  std::vector<LeftOut> left_out;
  std::vector<std::string> unmatched;  // entries of the rule that selected nothing here
  bool has_rdma = false;               // the host has RDMA cards, with or without an interface
  void Fields(auto& io) {
    io("candidates", candidates, kMostCandidates);
    io("left_out", left_out, kMostCandidates);
    io("unmatched", unmatched, kMostCandidates, wire::kMostName);
    io("has_rdma", has_rdma);
  }
};

// Limit for the candidate pairs of two hosts; further pairs are not tried.
inline constexpr std::size_t kMostTriesPerPeer = 64;

inline constexpr char kSmallOnly[] = "small messages pass, large ones do not";

// One attempt to reach another host. `from` and `to` are indices into Offer::candidates of their hosts.
struct Attempt {
  int from = 0;
  int peer = 0;  // the other host's number
  int to = 0;
  std::string why;                        // why it failed; empty: connected
  std::chrono::nanoseconds round_trip{};  // of a small message, if connected
  std::string leaves_by = {};             // the interface on the packets' route, if it is another one
  void Fields(auto& io) {
    io("from", from);
    io("peer", peer);
    io("to", to);
    io("why", why, wire::kMostName);
    io("round_trip", round_trip, wire::kUpToADay);
    io("leaves_by", leaves_by, wire::kMostName, wire::kPrintable);
  }
  bool connected() const { return why.empty(); }
  bool small_only() const { return why.starts_with(kSmallOnly); }
};

// The result of a bandwidth probe to another host.
struct Throughput {
  double bits_per_s = 0;  // 0: it failed
  std::chrono::nanoseconds round_trip{};
  double loss = 0;  // share of its packets that were retransmitted
  void Fields(auto& io) {
    io("bits_per_s", bits_per_s, wire::Between{0.0, 1e15});
    io("round_trip", round_trip, wire::kUpToADay);
    io("loss", loss);
  }
};

}  // namespace dtrun::network

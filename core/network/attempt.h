// One attempt to reach another host, from a candidate of this host to a candidate of the other.
//
// Values; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/wire/limits.h"

namespace dtrun::network {

// Limit for the candidate pairs of two hosts; further pairs are not tried.
inline constexpr std::size_t kMostTriesPerPeer = 64;

inline constexpr char kSmallOnly[] = "small messages pass, large ones do not";

// `from` and `to` are indices into Offer::candidates of their hosts.
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

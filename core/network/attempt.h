// One try to reach another host: from one of the own candidates to one of the other's.
//
// Values; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrun::network {

// Of the candidates of two hosts; the rest is not tried.
inline constexpr std::size_t kMostTriesPerPeer = 64;

inline constexpr char kSmallOnly[] = "small messages pass, large ones do not";

// Both are indices into Offer::candidates of their hosts.
struct Attempt {
  int from = 0;
  int peer = 0;  // number of the other host
  int to = 0;
  std::string why;                        // it failed; empty: connected
  std::chrono::nanoseconds round_trip{};  // of a small message, when connected
  std::string leaves_by = {};             // the interface that packets take by the routes, where another
  bool connected() const { return why.empty(); }
  bool small_only() const { return why.starts_with(kSmallOnly); }
};

// What a bandwidth probe of data to another host showed.
struct Throughput {
  double bits_per_s = 0;  // 0: it failed
  std::chrono::nanoseconds round_trip{};
  double loss = 0;  // share of its packets that had to be sent again
};

}  // namespace dtrun::network

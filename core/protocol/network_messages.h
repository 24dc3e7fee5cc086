// Messages that find the network between the hosts: after joining and before the first Prepare, which closes
// the listeners again (core/network/connectivity_check.h).
//
// Values; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/network/candidate.h"
#include "core/network/reach.h"
#include "core/protocol/phase.h"

namespace dtrun::protocol {

// Opens listeners on the interfaces of this host that network.interface allows. Answered by Surveyed or
// Refused.
struct Survey {
  static constexpr Rule kRule{.name = "Survey", .phases = kWhileIdle, .asks = Request::kSurvey};
  int host = 0;  // its number
  std::string rule;
  std::string connectivity_key;
  void Fields(auto& io) {
    io("host", host, wire::kAnyHost);
    io("rule", rule);
    io("connectivity_key", connectivity_key, wire::kMostName);
  }
};
// Tries to reach other hosts through their listeners.
struct CheckConnectivity {
  static constexpr Rule kRule{
      .name = "CheckConnectivity", .phases = kWhileIdle, .asks = Request::kConnectivityCheck};
  std::vector<network::Peer> peers;
  bool by_device = true;
  std::chrono::nanoseconds limit{};
  void Fields(auto& io) {
    io("peers", peers, wire::kMostHosts);
    io("by_device", by_device);
    io("limit", limit, wire::kUpToADay);
  }
};
// Sends a bandwidth probe from this host's candidate `from` to a candidate of another host.
struct Measure {
  static constexpr Rule kRule{.name = "Measure", .phases = kWhileIdle, .asks = Request::kMeasure};
  int from = 0;
  int peer = 0;
  network::Candidate to;
  bool by_device = true;
  double pace = 0;  // bits/s at most; 0: unlimited
  void Fields(auto& io) {
    io("from", from);
    io("peer", peer, wire::kAnyHost);
    io("to", to);
    io("by_device", by_device);
    io("pace", pace);
  }
};

struct Surveyed {
  static constexpr Rule kRule{.name = "Surveyed", .phases = kWhileIdle, .answers = Request::kSurvey};
  network::Offer offer;
  void Fields(auto& io) { io("offer", offer); }
};
struct ConnectivityChecked {
  static constexpr Rule kRule{
      .name = "ConnectivityChecked", .phases = kWhileIdle, .answers = Request::kConnectivityCheck};
  std::vector<network::Attempt> attempts;
  void Fields(auto& io) { io("attempts", attempts, wire::kMostEntries); }
};
struct Measured {
  static constexpr Rule kRule{.name = "Measured", .phases = kWhileIdle, .answers = Request::kMeasure};
  network::Throughput throughput;
  void Fields(auto& io) { io("throughput", throughput); }
};

}  // namespace dtrun::protocol

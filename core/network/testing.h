// Made-up results of connectivity checks for tests. Values; any thread.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/network/decision.h"

namespace dtrun::network {

// Two hosts with eth0 and eth1; eth0 is chosen. If eth1 works, it reaches all hosts too, but slower.
inline Decision TwoNetworks(bool eth1_works = true) {
  const auto card = [](int index, const char* name, const std::string& address) {
    Candidate one;
    one.index = index;
    one.interface = name;
    one.address = {asio::ip::make_address(address), 24};
    return one;
  };
  std::vector<HostOffer> hosts;
  for (const char* last : {"1", "2"}) {
    Offer offer;
    offer.candidates = {card(2, "eth0", std::string("10.5.0.") + last),
                        card(3, "eth1", std::string("10.6.0.") + last)};
    offer.left_out = {{"docker0", Kind::kBridge, "172.17.0.1/16", "is a virtual bridge of this host"}};
    hosts.push_back({std::string("node") + last, std::string("machine") + last, std::move(offer)});
  }
  Assignment fast{{0, 0}, 1e10, std::chrono::microseconds(20)},
      slow{{1, 1}, 1e8, std::chrono::microseconds(90)};
  std::vector<Assignment> measured{fast};
  if (eth1_works) measured.push_back(slow);
  Evidence evidence(std::move(hosts));
  if (!eth1_works) evidence.Add(0, {{1, 1, 1, "no answer", {}}});
  return {std::move(evidence),
          std::move(measured),
          fast,
          {false, false},
          true,
          {{}, std::chrono::milliseconds(80), {}}};
}

}  // namespace dtrun::network

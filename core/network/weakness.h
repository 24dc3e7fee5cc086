// What a network that joins all hosts is bad at: links that lose packets, hosts slower than the others,
// packets that leave by another interface.
//
// Values; pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/network/decision.h"

namespace dtrun::network {

struct Weakness {
  std::string what;  // "packets get lost: 9.8 % from node0 to node1 (eth1)"
  std::string fix;
};

// Of one that was measured: the chosen one, or another that programs may use by themselves.
std::vector<Weakness> WeaknessesOf(const Decision& decision, const Assignment& measured);

// Links that are far slower than most of the ring, or slow for any network.
std::vector<const MeasuredLink*> SlowLinks(const Assignment& measured);

}  // namespace dtrun::network

// Weaknesses of a network between all hosts: links that lose packets, hosts slower than the others, packets
// that leave through another interface.
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

// Weaknesses of a measured assignment: the chosen one, or another that programs may use by themselves.
std::vector<Weakness> WeaknessesOf(const Decision& decision, const Assignment& measured);

// Links that are far slower than most of the ring, or slow by any standard.
std::vector<const MeasuredLink*> SlowLinks(const Assignment& measured);

}  // namespace dtrun::network

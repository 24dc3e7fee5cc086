// Which hosts reach which, by what interfaces: the tries of a connectivity check seen from above, for a
// report.
//
// Values; pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/network/evidence.h"

namespace dtrun::network {

// One direction between two hosts.
struct Link {
  int from = 0;
  int to = 0;
  std::vector<std::string> interfaces;  // of `from`, that reach `to`, in the order of their indices
  std::vector<std::string> failed;      // "eth1 10.6.0.1 to eth1 10.6.0.3: no answer"
};

// Of all pairs that have to be connected, both directions, by host.
std::vector<Link> LinksOf(const Evidence& evidence);

// From whom, to whom, and by what; "none" where nothing reaches. Of many hosts those that have a
// link with a failed try, and of those the first few.
std::string Matrix(const Evidence& evidence, const std::vector<Link>& links);

// "eth1 of node2 does not reach node0: no answer": where an interface should reach another of its own
// network, because it reaches others there or small messages pass. What leads elsewhere need not.
std::vector<std::string> Broken(const Evidence& evidence);

}  // namespace dtrun::network

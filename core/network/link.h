// Which hosts reach each other through which interfaces: the attempts of a connectivity check, summarized for
// a report.
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
  std::vector<std::string> interfaces;  // of `from` that reach `to`, in the order of their indices
  std::vector<std::string> failed;      // "eth1 10.6.0.1 to eth1 10.6.0.3: no answer"
};

// Links of all pairs that must be connected, in both directions, by host.
std::vector<Link> LinksOf(const Evidence& evidence);

// Table of source, destination and interfaces; "none" if no interface reaches the destination. With many
// hosts, only the first few of those that have a link with a failed attempt.
std::string Matrix(const Evidence& evidence, const std::vector<Link>& links);

// "eth1 of node2 does not reach node0: no answer": only where an interface should reach another in its own
// network, because it reaches others there or small messages pass. Interfaces of different networks need not
// reach each other.
std::vector<std::string> Broken(const Evidence& evidence);

}  // namespace dtrun::network

// The hosts of a communicator's ranks.
//
// A value, the same on all ranks except for `rank`; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/comm/shm/group.h"
#include "dtrun/plugin/backend.hpp"

namespace dtrun::comm {

struct Topology {
  int rank = 0;
  std::vector<int> host_of;               // by rank; hosts are numbered as they first appear
  std::vector<int> place_of;              // by rank: its index among the ranks of its host
  std::vector<std::vector<int>> members;  // by host: its ranks, ascending; the first is the leader

  int size() const { return static_cast<int>(host_of.size()); }
  int hosts() const { return static_cast<int>(members.size()); }
  int host() const { return HostOf(rank); }
  int place() const { return place_of[static_cast<std::size_t>(rank)]; }
  int HostOf(int of) const { return host_of[static_cast<std::size_t>(of)]; }
  const std::vector<int>& Members(int of) const { return members[static_cast<std::size_t>(of)]; }
  const std::vector<int>& Mine() const { return Members(host()); }
  bool Leads() const { return place() == 0; }
  bool Together() const { return hosts() == 1; }
  bool Apart() const { return hosts() == size(); }
  std::vector<int> Leaders() const;
  std::size_t MostMembers() const;
};

// `hosts` by rank, any numbers.
Topology MakeTopology(int rank, const std::vector<int>& hosts);

// Publishes this rank's host and collects the others'. Throws sdk::Failure that names a rank missing at the
// deadline.
Topology Meet(const sdk::CommParams& params, int host, shm::Deadline& deadline);

}  // namespace dtrun::comm

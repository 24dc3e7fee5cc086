#include "core/comm/hierarchy/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "dtrun/plugin/membership.hpp"

namespace dtrun::comm {
namespace {

constexpr char kHost[] = "host";

// The hosts in rank order: rank 0 collects them and publishes the list.
std::string ListHosts(const sdk::Membership& members, const sdk::Deadline& deadline) {
  constexpr char kHosts[] = "hosts";
  if (members.rank() != 0) return members.kv().Get(kHosts, deadline.Left());
  std::string list;
  for (int rank = 0; rank < members.size(); ++rank) list += members.Said(kHost, rank) + " ";
  members.kv().Set(kHosts, list);
  return list;
}

}  // namespace

std::vector<int> Topology::Leaders() const {
  std::vector<int> leaders;
  for (const std::vector<int>& ranks : members) leaders.push_back(ranks.front());
  return leaders;
}

std::size_t Topology::MostMembers() const {
  std::size_t most = 0;
  for (const std::vector<int>& ranks : members) most = std::max(most, ranks.size());
  return most;
}

Topology MakeTopology(int rank, const std::vector<int>& hosts) {
  Topology topology;
  topology.rank = rank;
  std::map<int, int> numbers;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    const int host = numbers.try_emplace(hosts[r], static_cast<int>(numbers.size())).first->second;
    topology.members.resize(numbers.size());
    std::vector<int>& ranks = topology.members[static_cast<std::size_t>(host)];
    topology.host_of.push_back(host);
    topology.place_of.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(static_cast<int>(r));
  }
  return topology;
}

Topology Meet(const sdk::CommParams& params, int host, shm::Deadline& deadline) {
  deadline.Start();
  const sdk::Membership members(params);
  const sdk::Deadline until(params.timeout);
  members.Join(kHost, std::to_string(host), until);
  std::istringstream stream(ListHosts(members, until));
  std::vector<int> hosts;
  for (int number = 0; stream >> number;) hosts.push_back(number);
  if (hosts.size() == static_cast<std::size_t>(params.size)) return MakeTopology(params.rank, hosts);
  throw sdk::Failure(DTRUN_MISMATCH,
                     fmt::format("rank 0 counts {} ranks in '{}', rank {} expects {}", hosts.size(),
                                 params.name, params.rank, params.size),
                     0);
}

}  // namespace dtrun::comm

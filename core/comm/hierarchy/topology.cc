#include "core/comm/hierarchy/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include "core/base/units.h"

namespace dtrun::comm {
namespace {

sdk::Nanoseconds Left(shm::Deadline& deadline) {
  if (deadline.timeout_ns() < 0) return sdk::kNoLimit;
  return deadline.Left(std::chrono::hours(24));
}

std::string Key(int rank) { return "host/" + std::to_string(rank); }

// What rank 0 tells everybody: the hosts in the order of the ranks.
std::string Collect(const sdk::CommParams& params, shm::Deadline& deadline) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < params.size; ++rank) keys.push_back(Key(rank));
  params.kv.WaitMany(keys, Left(deadline));
  std::string list;
  for (const std::string& key : keys) list += params.kv.Get(key, Left(deadline)) + " ";
  params.kv.Set("hosts", list);
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
  params.kv.Set(Key(params.rank), std::to_string(host));
  std::string list;
  try {
    list = params.rank == 0 ? Collect(params, deadline) : params.kv.Get("hosts", Left(deadline));
  } catch (const sdk::Failure& failure) {
    if (failure.code() != DTRUN_TIMEOUT) throw;
    for (int rank = 0; rank < params.size; ++rank) {
      if (params.kv.TryGet(Key(rank))) continue;
      throw sdk::Failure(DTRUN_TIMEOUT,
                         fmt::format("rank {} did not join '{}' within {}; look at its output, or raise "
                                     "backend.timeout",
                                     rank, params.name, FormatDuration(Nanoseconds(params.timeout))),
                         rank);
    }
    throw;
  }
  std::istringstream stream(list);
  std::vector<int> hosts;
  for (int number = 0; stream >> number;) hosts.push_back(number);
  if (hosts.size() == static_cast<std::size_t>(params.size)) return MakeTopology(params.rank, hosts);
  throw sdk::Failure(DTRUN_MISMATCH,
                     fmt::format("rank 0 met {} ranks in '{}', rank {} expects {}", hosts.size(), params.name,
                                 params.rank, params.size),
                     0);
}

}  // namespace dtrun::comm

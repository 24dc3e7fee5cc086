// The ranks of a job and their hosts: the input of every environment dialect.
//
// A value, created from a plan (core/plan/dialects.h). Ports and paths are strings, because in a plan they
// are tokens until the job runs. Any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::environments {

struct TableHost {
  std::string name;
  std::string address;  // reachable from all other hosts; IPv6 without brackets
  int first_rank = 0;
  int local_size = 0;
  bool sees_gpus = true;  // NVIDIA or AMD
};

struct RankTable {
  std::string run_id;
  std::vector<TableHost> hosts;  // in rank order; each has a rank
  std::string master_address;
  std::string master_port;
  std::vector<std::string> task_ports;  // by rank: a port where the rank may listen
  std::vector<std::string> roles;       // by rank; empty: no roles
  std::string run_dir;
  int generation = 0;  // which start of the world, from 0
  int max_restarts = 0;
  std::string rendezvous_address;  // of the HTTP store for Horovod; empty: not served
  std::string rendezvous_port;

  int world_size() const { return hosts.back().first_rank + hosts.back().local_size; }
  int host_count() const { return static_cast<int>(hosts.size()); }
};

// The location of one rank.
struct Place {
  int rank = 0;
  int local_rank = 0;
  int host_index = 0;
  int local_size = 0;
};
// REQUIRES: 0 <= rank < world_size.
Place PlaceOf(const RankTable& table, int rank);

}  // namespace dtrun::environments

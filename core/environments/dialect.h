// Environment dialects: the variables that tell frameworks and other launchers' programs their rank, written
// from one rank table.
//
// docs/environments.md lists them with the source and the pitfalls of each contract.
// Pure functions; any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::environments {

// The ranks of a job and their hosts: the input of every environment dialect.
//
// A value, created from a plan (core/plan/dialects.h). Ports and paths are strings, because in a plan they
// are tokens until the job runs. Any thread.
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

using Variables = std::map<std::string, std::string>;

struct Contract {
  Variables set = {};
  // Used only if neither the user, the launcher nor the inherited environment sets a value.
  Variables fallback = {};
};

using Writer = Contract(const RankTable& table, int rank);

struct Dialect {
  const char* name;
  const char* summary;  // one line
  Writer* write;
  // The built-in port of this dialect's programs; null: none.
  int (*built_in_port)(int hosts) = nullptr;
};

std::span<const Dialect> Dialects();

// The error for an unknown name suggests the nearest one.
Result<const Dialect*> FindDialect(std::string_view name);

// The scopes of Horovod's rendezvous store and their sizes: all ranks, the ranks of a host, and the ranks
// with the same local rank.
std::map<std::string, std::size_t> HorovodScopes(const RankTable& table);

// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torch's env:// reads them.
Variables EnvVariables(const RankTable& table, int rank);

// The dialects' writers (frameworks.cc, platforms.cc), registered in dialect.cc.
Writer WriteAccelerate, WriteAzureMl, WriteDeepSpeed, WriteGcp, WriteHorovod, WriteJax, WriteKubeflowV1,
    WriteKubeflowV2, WriteLightning, WriteMpich, WriteOpenMpi, WriteSlurm, WriteSpark, WriteTfConfig,
    WriteTorchrun, WriteVertex;

int AzureMlPort(int hosts);

// TensorFlow's cluster roles (job.roles) by rank, from counts such as {"chief": "1", "worker": "2", "ps":
// "1"}, in the order chief, worker, ps, evaluator. No counts: no roles. The counts must add up to `ranks`.
Result<std::vector<std::string>> AssignRoles(const std::map<std::string, std::string>& counts, int ranks);

}  // namespace dtrun::environments

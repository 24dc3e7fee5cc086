// A rank's place in the job, read from its environment (core/contract/environment.h).
//
// Values; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/number.h"
#include "core/base/result.h"

namespace dtrun::comm {

// A plugin as named in the environment.
struct PluginSetting {
  std::string name;
  std::string path;     // absolute
  std::string file_id;  // empty: any file
  std::string options;  // JSON; empty: none
};

struct Environment {
  bool launched = false;  // false: not started by dtrun, a world of one
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  bool own_launcher = false;  // the user's own launcher started this rank; LOCAL_RANK says which it is
  int node_rank = 0;
  int host_count = 1;
  std::vector<int> host_ranks;  // how many ranks each host has; empty: not known
  std::uint64_t generation = 0;
  std::string job;
  std::string store;
  std::string job_key;
  std::uint64_t trace_bytes = 0;       // of its trace, at most; 0: none
  std::string recorder;                // empty: calls are not recorded
  PluginSetting backend;               // "none": the job uses no communicator
  PluginSetting device_backend;        // no name: the job has no separate one
  std::vector<PluginSetting> devices;  // plugins that may be loaded
  bool staging = true;                 // of device memory that no backend moves
  Nanoseconds timeout{-1};             // -1: no limit
  std::string interface_name;          // this host's, to reach the others; empty: dtrun chose none
  std::string address;                 // this host's, numeric
  int local_processors = 0;            // available to this host's ranks together
  bool shared_memory = true;           // between the ranks of one host
  int emulated_hosts = 1;              // more than one: the number of hosts to emulate, for tests

  // The host of this rank, as communicators see it, and the number of hosts.
  int host() const { return emulated_hosts > 1 ? Emulated(rank) : node_rank; }
  int hosts() const { return emulated_hosts > 1 ? emulated_hosts : host_count; }
  // By rank; empty: not known.
  std::vector<int> HostOfRanks() const;

 private:
  int Emulated(int of) const { return static_cast<int>(std::int64_t{of} * emulated_hosts / world_size); }
};

// A variable's value, or null.
using Lookup = std::function<const char*(const char* name)>;

// Reads and checks all variables. If none is set: a world of one. If some are missing: an error that names
// them. Errors never quote the job key.
Result<Environment> ReadEnvironment(const Lookup& lookup);

// For a world of one: that mpirun, torchrun or srun seems to have started several ranks, which do not join
// each other without dtrun, and the next step. Empty: none has.
std::string OtherLauncherText(const Lookup& lookup);

}  // namespace dtrun::comm

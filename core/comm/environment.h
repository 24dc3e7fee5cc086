// What a rank's environment says of its place: the reader of core/contract/environment.h.
//
// Values; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace dtrun::comm {

// A plugin as the environment names it.
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
  bool own_launcher = false;  // of the user's: it started this rank, and LOCAL_RANK says which it is
  int node_rank = 0;
  int host_count = 1;
  std::vector<int> host_ranks;  // how many ranks each host has; empty: not known
  std::uint64_t generation = 0;
  std::string job;
  std::string store;
  std::string job_key;
  std::string recorder;                // empty: calls are not recorded
  PluginSetting backend;               // "none": the job wants no communicator
  PluginSetting device_backend;        // no name: there is none beside the host's
  std::vector<PluginSetting> devices;  // plugins that may be loaded
  bool staging = true;                 // of device memory that no backend moves
  Nanoseconds timeout{-1};             // -1: no limit
  std::string interface_name;          // of this host, to reach the others; empty: dtrun has chosen none
  std::string address;                 // its own, numeric
  int local_processors = 0;            // that the ranks of this host may use together
  bool shared_memory = true;           // joins the ranks of one host
  int emulated_hosts = 1;              // more than one: what the ranks pretend to live on, for tests

  // The host that this rank lives on, as communicators see it, and how many there are.
  int host() const { return emulated_hosts > 1 ? Emulated(rank) : node_rank; }
  int hosts() const { return emulated_hosts > 1 ? emulated_hosts : host_count; }
  // By rank; empty: not known.
  std::vector<int> HostOfRanks() const;

 private:
  int Emulated(int of) const { return static_cast<int>(std::int64_t{of} * emulated_hosts / world_size); }
};

// A variable's value, or null.
using Lookup = std::function<const char*(const char* name)>;

// Reads and checks everything. Without any of the variables: a world of one. With some
// but not all: an error that names the missing ones. Values never include the job key.
Result<Environment> ReadEnvironment(const Lookup& lookup);

}  // namespace dtrun::comm

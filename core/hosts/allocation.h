// Which hosts a platform gave to the job, as the variables of that platform say it.
//
// Platforms number different things: RANK is a host on GCP AI Platform, Alibaba PAI and
// Spark, and a process elsewhere. So the platform is named by the user, or recognised by
// variables that only it sets; a bare RANK and WORLD_SIZE are never guessed at. Contracts:
// docs/environments.md. Pure functions of an environment; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hosts/host_slots.h"

namespace dtrun::hosts {

using Environment = std::map<std::string, std::string>;

struct HostCount {
  int min = 1;
  int max = 1;  // more than min: hosts may join and leave
  bool operator==(const HostCount&) const = default;
};

struct Allocation {
  std::string platform;            // whose variables said it
  std::vector<HostSlots> hosts;    // in order; empty: the platform says only how many
  HostCount count;                 // without hosts 0: the user has to say it
  bool everywhere = false;         // the platform starts dtrun on every host; else once, for all
  std::optional<int> own_index;    // which host this is
  std::string root_address;        // of host 0; empty: not said
  std::optional<int> rank_port;    // where rank 0 listens by the platform's contract; dtrun never does
  bool rank_port_taken = false;    // the platform itself listens there
  std::string processes_per_host;  // as job.processes_per_host takes it; empty: not said
  std::string hostfile;            // path of a file with the hosts; empty: none
  std::string sharing;   // how all hosts come to have DTRUN_CLUSTER_KEY there; empty: they need none
  std::string connect;   // what cluster.connect is by default; empty: a remote shell
  std::string evidence;  // the variable by which the platform is known
  std::vector<std::string> implies;  // platforms whose variables this one has set as well
};

struct Platform {
  const char* name;     // what cluster.from takes
  const char* summary;  // one line
  // How all hosts come to have DTRUN_CLUSTER_KEY there; empty: they need none.
  const char* sharing;
  Result<Allocation> (*read)(const Environment& environment);
};
const std::vector<Platform>& Platforms();

// Where the hosts of a job meet when its ranks have `rank_port`: the same on all of them, from 10000 to
// 19999, so below the ports that systems give out. Ports beside each other lead far apart, for jobs that
// share a host.
int RendezvousPort(int rank_port);

class Launchers;  // core/hosts/launchers.h

// `from`: a platform's name, that of a launcher plugin that finds hosts, or "auto". Errors name every
// variable that is unset or contradicts another one. `launchers`: null: there are none.
//
// "auto" is the platform whose own variables are set; launchers are asked when that is none of the built-in
// ones, or one that also runs inside the allocations of others, as mpirun does. None: DTRUN_NOT_FOUND.
// Several that do not imply each other, or RANK and WORLD_SIZE alone: an error with what was found, which
// asks for the choice.
Result<Allocation> FromEnvironment(const Environment& environment, std::string_view from,
                                   Launchers* launchers = nullptr);

}  // namespace dtrun::hosts

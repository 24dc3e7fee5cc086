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
  std::vector<HostSlots> hosts;  // in order; empty: the platform says only how many
  HostCount count;
  // Set: the platform starts this command on every host, and this is the number of ours.
  // Unset: it is started once, for all hosts.
  std::optional<int> own_index;
  std::string root_address;        // of host 0; empty: not said
  std::optional<int> rank_port;    // where rank 0 listens by the platform's contract; dtrun never does
  bool rank_port_taken = false;    // the platform itself listens there
  std::string processes_per_host;  // as job.processes_per_host takes it; empty: not said
  std::string hostfile;            // path of a file with the hosts; empty: none
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

// `from`: a platform's name, or "auto". Errors name every variable that is unset or
// contradicts another one.
Result<Allocation> FromEnvironment(const Environment& environment, std::string_view from);

// The platform whose own variables are set. None: DTRUN_NOT_FOUND. Several that do not
// imply each other, or RANK and WORLD_SIZE alone: an error with what was found, which
// asks for the choice.
Result<std::string> DetectPlatform(const Environment& environment);

}  // namespace dtrun::hosts

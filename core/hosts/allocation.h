// Reads from a platform's environment variables which hosts it allocated to the job.
//
// RANK numbers hosts on GCP AI Platform, Alibaba PAI and Spark, and processes elsewhere. So the
// user names the platform, or dtrun recognises it by variables that only this platform sets. dtrun
// never guesses from RANK and WORLD_SIZE alone. Contracts: docs/environments.md. Pure functions of
// an environment; any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/hosts/host_slots.h"

namespace dtrun::hosts {

using Environment = std::map<std::string, std::string>;

struct HostCount {
  int min = 1;
  int max = 1;  // greater than min: hosts may join and leave
  void Fields(auto& io) {
    io("min", min);
    io("max", max);
  }
  bool operator==(const HostCount&) const = default;
};

struct Allocation {
  std::string platform;          // the platform that set the variables
  std::vector<HostSlots> hosts;  // in order; empty: the platform gives only their number
  HostCount count;               // without hosts, 0: the user must set it
  bool everywhere = false;       // the platform starts dtrun on every host; otherwise once per job
  std::optional<int> own_index;  // the index of this host
  std::string root_address;      // of host 0; empty: unknown
  std::optional<int> rank_port;  // rank 0's port by the platform's contract; dtrun itself never listens there
  bool rank_port_taken = false;  // the platform itself listens there
  std::string processes_per_host;    // a value of job.processes_per_host; empty: unknown
  std::string hostfile;              // path of a file with the hosts; empty: none
  std::string sharing;               // how DTRUN_CLUSTER_KEY reaches all hosts; empty: not needed
  std::string connect;               // default of cluster.connect; empty: a remote shell
  std::string evidence;              // the variable that identified the platform
  std::vector<std::string> implies;  // platforms that also have their variables set here
  // What a launcher plugin answers.
  void Fields(auto& io) {
    io("hosts", hosts, wire::kMostHosts);
    io("count", count);
    io("everywhere", everywhere);
    io("own_index", own_index);
    io("root_address", root_address);
    io("rank_port", rank_port);
    io("rank_port_taken", rank_port_taken);
    io("processes_per_host", processes_per_host);
    io("evidence", evidence);
    io("implies", implies, wire::kMostEntries);
    io("sharing", sharing);
  }
};

using PlatformReader = Result<Allocation>(const Environment& environment);

struct Platform {
  const char* name;     // value of cluster.from
  const char* summary;  // one line
  // How DTRUN_CLUSTER_KEY reaches all hosts; empty: not needed.
  const char* sharing;
  PlatformReader* read;
};
std::span<const Platform> Platforms();

// The rendezvous port for a job with this `rank_port`: equal on all its hosts, from 10000 to 19999, so below
// the ephemeral ports. Neighbouring rank ports map far apart, for jobs that share a host.
int RendezvousPort(int rank_port);

class Launchers;  // core/hosts/launchers.h

// `from` is a platform name, a launcher plugin that finds hosts, or "auto". Errors name every variable that
// is unset or contradicts another one. `launchers`: null if there are none.
//
// "auto" selects the platform that has its own variables set. It queries the launchers if no built-in
// platform matches, or if the match also runs inside other platforms' allocations, as mpirun does. No match:
// DTRUN_NOT_FOUND. Several matches that do not imply each other, or RANK and WORLD_SIZE alone: an error that
// lists them and asks the user to choose.
Result<Allocation> FromEnvironment(const Environment& environment, std::string_view from,
                                   Launchers* launchers = nullptr);

}  // namespace dtrun::hosts

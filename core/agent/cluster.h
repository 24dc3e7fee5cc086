// How the hosts of a job come together: what the root and an agent need to know of each
// other before they meet. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/control/key.h"

namespace dtrun::agent {

struct Cluster {
  // How agents come to be on the other hosts.
  enum class Connect {
    kShell,   // a remote shell such as ssh, one per host
    kSlurm,   // one srun for all, in the allocation that dtrun runs in
    kManual,  // somebody else starts dtrun on each host
  };
  Connect connect = Connect::kShell;
  std::vector<std::string> hosts;         // names in order; empty ones: only their number is known
  int here = -1;                          // the one that is this machine; -1: none
  std::size_t min_hosts = 1;              // the job runs on so many of them, when no more come
  Nanoseconds last_call{};                // ... within this time
  std::vector<std::string> remote_shell;  // host name and command are appended
  std::string dtrun;                      // path on the other hosts
  std::vector<std::string> names;         // where agents reach the root; empty: found out
  int port = 0;                           // of the root; 0: any free one
  std::optional<control::Key> key;        // unset: made for this job
  std::string key_origin;                 // of a given key, for errors
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};     // without a sign of life
  bool share_machines = false;  // several hosts may be one machine
};

// What an agent must know to find its root.
struct Summons {
  std::string job;
  std::vector<std::string> names;
  int port = 0;
  control::Key key;
  int host = -1;  // its number; -1: see `nodes`, else the root deals it out
  // One line may summon several: then each finds itself here, by the name that Slurm has for its node. Number
  // and name of each.
  std::map<int, std::string> nodes = {};
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};
  std::string port_range = {};  // cluster.port_range
  std::string key_origin = {};  // where this host has the key from, for errors; not part of the line
};

// The one line that a remote shell gives to `dtrun agent`. The key travels in hex.
std::string ToLine(const Summons& summons, const std::string& key_digits);
Result<Summons> ParseSummons(const std::string& line);
// The number of the host that Slurm calls `node` (SLURMD_NODENAME, null when unset).
Result<int> NumberAmong(const std::map<int, std::string>& nodes, const char* node);

// Boot id and network namespace: equal on the same machine only.
std::string MachineIdentity();
// Whether `host`, as a user writes it, means this machine without asking any name service:
// localhost, its own name in full or up to the first dot, or an address of its own.
bool IsThisMachine(const std::string& host);
// The same, asking the name service too: so any name or address of any of its interfaces counts.
bool LeadsHere(const std::string& host);
// Whether it is a numeric address of an interface of this machine.
bool IsOwnAddress(const std::string& text);
// Numeric addresses of this machine that others may reach, none of loopback.
std::vector<std::string> OwnAddresses();
// The own address that a packet to `peer`, numeric, would carry; empty: no route.
std::string AddressTowards(const std::string& peer);

}  // namespace dtrun::agent

// How the hosts of a job come together: what the root and an agent need to know of each
// other before they meet. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/control/key.h"

namespace dtrun::agent {

struct Cluster {
  // How agents come to be on the other hosts. "slurm" has its place here: one more way to
  // start `dtrun agent` everywhere, whose processes end with the job.
  enum class Connect {
    kShell,   // a remote shell such as ssh, one per host
    kManual,  // somebody else starts dtrun on each host
  };
  Connect connect = Connect::kShell;
  std::vector<std::string> hosts;         // as in the plan
  int here = -1;                          // the one that is this machine; -1: none
  std::vector<std::string> remote_shell;  // host name and command are appended
  std::string dtrun;                      // path on the other hosts
  std::vector<std::string> names;         // where agents reach the root; empty: found out
  int port = 0;                           // of the root; 0: any free one
  std::optional<control::Key> key;        // unset: made for this job
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
  int host = 0;           // its number
  std::string host_name;  // its name in the plan
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};
};

// The one line that a remote shell gives to `dtrun agent`. The key travels in hex.
std::string ToLine(const Summons& summons, const std::string& key_digits);
Result<Summons> ParseSummons(const std::string& line);

// Boot id and network namespace: equal on the same machine only.
std::string MachineIdentity();
// Whether `host`, as a user writes it, means this machine without asking any name service:
// localhost, its own name in full or up to the first dot, or an address of its own.
bool IsThisMachine(const std::string& host);
// Numeric addresses of this machine that others may reach, none of loopback.
std::vector<std::string> OwnAddresses();
// The own address that a packet to `peer`, numeric, would carry; empty: no route.
std::string AddressTowards(const std::string& peer);

}  // namespace dtrun::agent

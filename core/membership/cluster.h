// How the hosts of a job come together, as the user has asked for it. Values; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/hosts/launchers.h"
#include "core/protocol/key.h"

namespace dtrun::membership {

struct Cluster {
  // How agents are started on the other hosts.
  enum class Connect {
    kShell,     // a remote shell such as ssh, one per host
    kLauncher,  // commands of a launcher, each for one host or several
    kManual,    // somebody else starts dtrun on each host
  };
  Connect connect = Connect::kShell;
  std::string launcher;  // of kLauncher: its name
  // Of kLauncher: the commands for those hosts.
  std::function<Result<std::vector<hosts::StartCommand>>(const std::vector<std::string>& hosts)> connector;
  std::vector<std::string> hosts;         // names in order; empty ones: only their number is known
  int here = -1;                          // the one that is this machine; -1: none
  std::size_t min_hosts = 1;              // the job runs on so many of them, when no more come
  Nanoseconds last_call{};                // ... within this time
  std::vector<std::string> remote_shell;  // host name and command are appended
  std::string dtrun;                      // path on the other hosts
  std::vector<std::string> names;         // where agents reach the root; empty: found out
  int port = 0;                           // of the root; 0: any free one
  std::optional<protocol::Key> key;       // unset: made for this job
  std::string key_origin;                 // of a given key, for errors
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};     // without a sign of life
  bool share_machines = false;  // several hosts may be one machine
  // A name that does not resolve may do so later: of a pod or machine that is not up yet. Else it is wrong.
  bool names_come_late = false;
};

}  // namespace dtrun::membership

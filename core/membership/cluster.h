// How the hosts of a job come together, from the user's options. Values; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/number.h"
#include "core/hosts/launchers.h"
#include "core/protocol/tls.h"

namespace dtrun::membership {

struct Cluster {
  // How agents are started on the other hosts.
  enum class Connect {
    kShell,     // a remote shell such as ssh, one per host
    kLauncher,  // commands of a launcher, each for one host or several
    kManual,    // the user or another tool starts dtrun on each host
  };
  Connect connect = Connect::kShell;
  std::string launcher;  // kLauncher: its name
  // kLauncher: the commands for these hosts.
  std::function<Result<std::vector<hosts::StartCommand>>(const std::vector<std::string>& hosts)> connector;
  std::vector<std::string> hosts;         // names in order; empty name: only the number is known
  int here = -1;                          // index of this machine; -1: none
  std::size_t min_hosts = 1;              // the job runs on this many hosts if no more come
  Nanoseconds last_call{};                // ... within this time
  std::vector<std::string> remote_shell;  // host name and command are appended
  std::string dtrun;                      // path on the other hosts
  std::vector<std::string> names;         // addresses where agents reach the root; empty: detect
  int port = 0;                           // the root's port; 0: any free one
  std::optional<protocol::Key> key;       // nullopt: created for this job
  std::string key_origin;                 // origin of a given key, for errors
  std::string port_place;                 // prefix of errors about `port`
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};     // time without a sign of life
  bool share_machines = false;  // several hosts may share one machine
  // True: a name that does not resolve may do so later, for a pod or machine that is not up yet. False: it is
  // an error.
  bool names_come_late = false;
};

}  // namespace dtrun::membership

// What a process that is to become the agent of a host must know to find its root: the one line that it
// gets on stdin. Values; any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/protocol/key.h"

namespace dtrun::protocol {

// What an agent must know to find its root.
struct JoinRequest {
  std::string job;
  std::vector<std::string> names;
  int port = 0;
  protocol::Key key;
  int host = -1;  // its number; -1: see `nodes`, else the root deals it out
  // One line may be for several: then each finds itself here. Number and name of each.
  std::map<int, std::string> nodes = {};
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};
  std::string port_range = {};     // cluster.port_range
  std::string node_variable = {};  // that has each one's name in `nodes`; empty: the host knows it itself
  std::string log_levels = {};     // what the root keeps of its log (core/log/levels.h); empty: the agent's own
  bool log_json = false;
  std::string key_origin = {};     // where this host has the key from, for errors; not part of the line
};

// The one line that a remote shell gives to `dtrun agent`. The key travels in hex.
std::string ToLine(const JoinRequest& request, const std::string& key_digits);
Result<JoinRequest> ParseJoinRequest(const std::string& line);
// The number of this host among the request's nodes. `node`: the value of node_variable, null when unset;
// `is_own` tells whether a name is this host's.
Result<int> NumberAmong(const JoinRequest& request, const char* node,
                        const std::function<bool(const std::string& name)>& is_own);

}  // namespace dtrun::protocol

// The data that a new agent needs to find its root: one line on its stdin. Values; any thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/protocol/key.h"
#include "core/wire/limits.h"

namespace dtrun::protocol {

// The data an agent needs to find its root.
struct JoinRequest {
  std::string job = {};
  std::vector<std::string> names = {};
  int port = 0;
  protocol::Key key;
  int host = -1;  // its number; -1: see `nodes`, otherwise the root assigns it
  // Number and name of each host, if one line serves several hosts; each then finds its own entry.
  std::vector<std::pair<int, std::string>> nodes = {};
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};
  std::string port_range = {};     // cluster.port_range
  std::string node_variable = {};  // variable with each host's name in `nodes`; empty: the host knows it
  std::string log_levels = {};     // the root's log levels (core/log/log.h); empty: the agent's own
  bool log_json = false;
  std::string key_origin = {};  // where this host got the key, for errors; not part of the line
  void Fields(auto& io) {       // but the key
    io("job", job);
    io("names", names, wire::kMostEntries);
    io("port", port, wire::kAnyPort);
    io("host", host);
    io("nodes", nodes, wire::kMostHosts);
    io("node_variable", node_variable);
    io("join_timeout_ns", join_timeout);
    io("lost_after_ns", lost_after);
    io("port_range", port_range);
    io("log_levels", log_levels, wire::kMayMiss);
    io("log_json", log_json, wire::kMayMiss);
  }
};

// The line that a remote shell passes to `dtrun agent`. The key is in hex.
std::string ToLine(const JoinRequest& request, const std::string& key_digits);
Result<JoinRequest> ParseJoinRequest(const std::string& line);
// The number of this host among the request's nodes. `node`: the value of node_variable, null if unset.
// `is_own`: whether a name is this host's.
Result<int> NumberAmong(const JoinRequest& request, const char* node,
                        const std::function<bool(const std::string& name)>& is_own);

}  // namespace dtrun::protocol

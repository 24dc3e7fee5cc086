// Where the nodes of a torchrun job meet, and what that means in dtrun's settings.
//
// The one place that knows which settings a job on several nodes, and restarts, become.
// Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {

struct Rendezvous {
  std::string run_id;
  int nodes = 1;            // that the job begins with
  int most_nodes = 1;       // above `nodes`: more may join
  std::string host;         // of the endpoint; empty: this node is alone
  std::optional<int> port;  // where the nodes meet; alone: MASTER_PORT, unset for any free one
  // Number of this node. Unset: the root deals them out.
  std::optional<int> node;
  // As in rdzv_conf, in seconds; empty: not given.
  std::string join_timeout, last_call;
  bool insecure = false;  // the user does without a secret
};

// Whether a job's nodes would meet at this process: the host is this machine, and no dtrun has the port.
using MeetHere = std::function<bool(const std::string& host, int port)>;

// `uuid` names a job that has no other name.
Result<Rendezvous> RendezvousOf(const Arguments& arguments, const std::string& uuid,
                                const MeetHere& meet_here);

// The settings for several nodes and for restarts.
std::vector<config::Given> ClusterSettings(const Arguments& arguments, const Rendezvous& rendezvous);

}  // namespace dtrun::torchrun

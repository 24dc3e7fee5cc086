// The meeting point of a torchrun job's nodes, and the corresponding dtrun spec.
//
// The only code that knows the spec for several nodes and for restarts. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/read.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {

struct Rendezvous {
  std::string run_id;
  int nodes = 1;            // at the start of the job
  int most_nodes = 1;       // more than `nodes`: others may join later
  std::string host;         // of the endpoint; empty: a single node
  std::optional<int> port;  // where the nodes meet; single node: MASTER_PORT, unset for any free port
  // Index of this node. Unset: the root assigns it.
  std::optional<int> node;
  // As in rdzv_conf, in seconds; empty: not given.
  std::string join_timeout, last_call;
  bool insecure = false;  // the user accepts a job without a secret
};

// Whether a job's nodes would meet at this process: the host is this machine, and no dtrun uses the port.
using MeetHere = std::function<bool(const std::string& host, int port)>;

// `uuid`: the name of a job without another name.
Result<Rendezvous> RendezvousOf(const Arguments& arguments, const std::string& uuid,
                                const MeetHere& meet_here);

// The spec for several nodes and for restarts.
std::vector<spec::Given> ClusterSettings(const Arguments& arguments, const Rendezvous& rendezvous);

}  // namespace dtrun::torchrun

// Asks all hosts of a cluster, and finds the network between them, without running a job there: for
// `dtrun doctor`. Owns its loop and runs it until all have answered; one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/membership/cluster.h"
#include "core/plan/plan.h"
#include "core/preflight/network.h"
#include "core/process/lifeline.h"

namespace dtrun::membership {

struct Inquiry {
  std::string job;
  std::vector<std::string> hosts;                // names, for what is found between them
  std::vector<preflight::Request> requests;      // by host
  std::vector<plan::NetworkRule> network_rules;  // by host; empty: no network is looked for
};

struct Answers {
  std::optional<preflight::NetworkFinding> network;  // of several machines
  double asked_seconds = 0;                          // since 1970, when the requests went out
  std::vector<std::size_t> hosts;                    // those that have joined: their numbers
  std::vector<preflight::Answer> by_host;            // of these
  // Hosts that have not joined, each with the reason.
  std::vector<std::pair<std::string, std::string>> missing;
  // Why there are none by host: if the network does not connect all, one may be lost when asked.
  std::string lost;
};

// Brings the hosts together, looks for their network, asks each its request, and lets them go.
// Fewer than all are asked where cluster.min_hosts allows it. Errors name the host that is missing or was
// lost, and the next step. `say` gets lines about who is
// missing. REQUIRES: called by the work of Guarded; a request for each host.
Result<Answers> AskHosts(const Cluster& cluster, const Inquiry& inquiry, process::Lifeline& lifeline,
                         const std::function<void(const std::string& line)>& say);

}  // namespace dtrun::membership

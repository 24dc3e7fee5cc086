// Sends requests to all hosts of a cluster and finds the network between them, without running a job: for
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
#include "core/preflight/report.h"
#include "core/process/lifeline.h"

namespace dtrun::membership {

struct Inquiry {
  std::string job;
  std::vector<std::string> hosts;                // names, for network findings
  std::vector<preflight::Request> requests;      // by host
  std::vector<plan::NetworkRule> network_rules;  // by host; empty: skip the network search
};

struct Answers {
  std::optional<preflight::NetworkFinding> network;  // if there are several machines
  double asked_seconds = 0;                          // Unix time when the requests were sent
  std::vector<std::size_t> hosts;                    // numbers of the hosts that have joined
  std::vector<preflight::Answer> by_host;            // answers of `hosts`
  // Hosts that have not joined, each with the reason.
  std::vector<std::pair<std::string, std::string>> missing;
  // Why by_host is empty: if the network does not connect all hosts, one may be lost during the request.
  std::string lost;
};

// Lets the hosts join, finds their network, sends each its request, and releases them. Asks fewer than all
// hosts if cluster.min_hosts allows it. Errors name the missing or lost host, and the next step. `say` gets
// lines about missing hosts. REQUIRES: called by the work of Guarded; a request for each host.
Result<Answers> AskHosts(const Cluster& cluster, const Inquiry& inquiry, process::Lifeline& lifeline,
                         const std::function<void(const std::string& line)>& say);

}  // namespace dtrun::membership

// Runs a plan and says how it went: the root of a job.
//
// One event loop, one thread (plus a console writer). The caller is the agent process of
// core/node/guard.h, so that whatever process dies, nothing of the job survives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/job/restart.h"
#include "core/job/stall_watch.h"
#include "core/membership/cluster.h"
#include "core/network/decision.h"
#include "core/node/guard.h"
#include "core/plan/hosts.h"

namespace dtrun::job {

struct RunRequest {
  plan::Plan plan;
  RestartPolicy restart;
  // Lines of the header, given the plan and the run directory; printed on stderr.
  std::function<std::string(const plan::Plan& plan, const std::string& run_dir)> header;
  // Jobs on several hosts: how they come together, and the plan once they have said what they
  // offer, by host. `network` is null until the one that joins them is known.
  std::optional<membership::Cluster> cluster = {};
  // `answers`: to `requests`, by host; empty before they are asked, and when there are none.
  std::function<Result<plan::Plan>(const std::vector<plan::HostOffer>& offers,
                                   const std::vector<std::string>& answers, const network::Decision* network)>
      replan = {};
  // Of core/preflight, to each host before the plan; may be none at all.
  std::function<Result<std::vector<std::string>>(const std::vector<plan::HostOffer>& offers)> requests = {};
  verdict::IsolationPolicy isolated_ranks = verdict::IsolationPolicy::kWarn;
  StallPolicy stall = {};
  bool quiet = false;  // a job that succeeds gets no verdict on stderr
};

// Exit code of dtrun: 0 when all ranks succeeded; the code of the rank that failed first
// (128 + signal for a signal); 130/143 after an interrupt; 2 when the job could not be
// started because of what the user asked for (port in use, log folder not writable, ...).
// Prints header, output, and the verdict. REQUIRES: called by the work of Guarded.
int Run(const RunRequest& request, process::Lifeline& lifeline);

}  // namespace dtrun::job

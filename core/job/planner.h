// Makes the plan of a job on several hosts once they have joined, and again when others join.
//
// Owned by core/launch, and passed to the root's run (core/job/run.h), which calls it on its loop thread.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/network/decision.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"
#include "core/preflight/preflight.h"

namespace dtrun::job {

class Planner {
 public:
  virtual ~Planner() = default;

  // The plan for joined hosts with these offers. `answers`: to PreflightRequests, by host; empty before the
  // requests, and if there were none. `network`: the one between the hosts, null until it is known.
  virtual Result<plan::Plan> PlanFor(const std::vector<plan::HostOffer>& offers,
                                     const std::vector<preflight::Answer>& answers,
                                     const network::Decision* network) = 0;
  // The request to each host before planning, by host; empty: nothing to ask.
  virtual Result<std::vector<preflight::Request>> PreflightRequests(
      const std::vector<plan::HostOffer>& offers) const = 0;
};

}  // namespace dtrun::job

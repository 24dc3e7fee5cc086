// Makes the plan of a job on several hosts once they have come, and again when others do.
//
// Owned by core/launch, and given to the root's run (core/job/run.h), which asks on its loop thread.
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

  // The plan for hosts that have come with these offers. `answers`: theirs to PreflightRequests, by host;
  // empty before they are asked, and when there is nothing to ask. `network`: that joins them, null until it
  // is known.
  virtual Result<plan::Plan> PlanFor(const std::vector<plan::HostOffer>& offers,
                                     const std::vector<preflight::Answer>& answers,
                                     const network::Decision* network) = 0;
  // What each host is asked before the plan, by host; none when there is nothing to ask.
  virtual Result<std::vector<preflight::Request>> PreflightRequests(
      const std::vector<plan::HostOffer>& offers) const = 0;
};

}  // namespace dtrun::job

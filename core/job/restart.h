// Decides whether and when a failed job is restarted.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "core/verdict/cause.h"

namespace dtrun::job {

struct RestartPolicy {
  int max = 0;                         // restarts of a job; 0: none
  std::chrono::nanoseconds backoff{};  // before the second restart; doubles each time, up to a minute
  std::set<verdict::ExitClass> on;     // causes that justify a restart
  bool after_stall = false;            // of a job that watch.on_stall has ended
};

struct RestartDecision {
  bool restart = false;
  std::chrono::nanoseconds wait{};  // before the restart
  std::string why;                  // one clause for the user; empty if restarts were not requested
};

// `restarts`: number of restarts so far. REQUIRES: the generation has failed.
RestartDecision DecideRestart(const RestartPolicy& policy, int restarts, const verdict::Facts& facts);

}  // namespace dtrun::job

// Whether a job that failed is started again, and when.
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
  std::chrono::nanoseconds backoff{};  // before the second restart; twice as long each time, up to a minute
  std::set<verdict::ExitClass> on;     // causes that are worth another try
};

struct RestartDecision {
  bool restart = false;
  std::chrono::nanoseconds wait{};  // before it
  std::string why;                  // one clause for the user; empty when restarts were never asked for
};

// `restarts` there were already. REQUIRES: the generation has failed.
RestartDecision DecideRestart(const RestartPolicy& policy, int restarts, const verdict::Facts& facts);

}  // namespace dtrun::job

// Runs a plan and says how it went: the root of a job.
//
// Owns everything of the run. One event loop, one thread (plus a console writer). The caller is the agent
// process of core/node/guard.h, so that whatever process dies, nothing of the job survives.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "core/job/planner.h"
#include "core/job/presenter.h"
#include "core/job/restart.h"
#include "core/job/stall_watch.h"
#include "core/membership/cluster.h"
#include "core/node/guard.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {

struct RunRequest {
  plan::Plan plan;
  RestartPolicy restart;
  Presenter& presenter;
  // Jobs on several hosts: how they come together, and who plans for those that have come.
  std::optional<membership::Cluster> cluster = {};
  Planner* planner = nullptr;
  verdict::IsolationPolicy isolated_ranks = verdict::IsolationPolicy::kWarn;
  StallPolicy stall = {};
  std::chrono::nanoseconds time_limit{};  // of the job with its restarts; 0: none
  bool quiet = false;               // a job that succeeds gets no verdict on stderr
  std::string dir_file = {};        // gets the path of the run directory; empty: no file does
  std::string dir_file_place = {};  // before errors of that file
};

struct Outcome {
  std::optional<verdict::Facts> facts;  // of the last generation; unset: it could not be started
  plan::Plan plan;                      // of that one
  std::string run_dir;
  std::time_t started = 0;  // the first generation; 0: no rank was

  // Of dtrun: 0 when all ranks succeeded; the code of the rank that failed first (128 + signal for a signal);
  // 130/143 after an interrupt; 2 when the job could not be started because of what the user asked for (port
  // in use, log folder not writable, ...).
  int exit_code() const { return facts ? verdict::ExitCode(*facts) : kUserError; }
};

// Prints header, output, and the verdict. REQUIRES: called by the work of Guarded; a planner where there is a
// cluster.
Outcome Run(const RunRequest& request, process::Lifeline& lifeline);

}  // namespace dtrun::job

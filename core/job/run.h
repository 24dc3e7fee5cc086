// Runs a plan and reports the outcome: the root of a job.
//
// Owns everything of the run. One event loop, one thread (plus a console writer). The caller is the agent
// process of core/node/guard.h, so the whole job is cleaned up if any process dies.
#pragma once

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/job/planner.h"
#include "core/job/restart.h"
#include "core/membership/cluster.h"
#include "core/metrics/server.h"
#include "core/node/guard.h"
#include "core/observe/stall_watch.h"
#include "core/output/output.h"
#include "core/plan/plan.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {

// How a job is presented to the user; each command line that starts jobs has its own presenter.
//
// Called by the root's run (core/job/run.h) on its loop thread. The defaults print nothing and leave the
// ranks' output where the plan puts it.
class Presenter {
 public:
  virtual ~Presenter() = default;

  // Called before the run makes its folder.
  virtual Status Prepare(const plan::Plan& plan) {
    (void)plan;
    return {};
  }
  // Lines for stderr, once ranks are about to start.
  virtual std::string Header(const plan::Plan& plan, const std::string& run_dir) {
    (void)plan, (void)run_dir;
    return {};
  }
  // Where the output of a rank goes; nullopt: to files in `logs`, the folder of the generation.
  virtual Result<std::optional<output::Routes>> RoutesOf(const plan::Plan& plan,
                                                         const std::filesystem::path& logs, int rank) {
    (void)plan, (void)logs, (void)rank;
    return {std::nullopt};
  }
};

struct RunRequest {
  plan::Plan plan;
  RestartPolicy restart;
  Presenter& presenter;
  // For jobs on several hosts: how they join, and the planner for those that have joined.
  std::optional<membership::Cluster> cluster = {};
  Planner* planner = nullptr;
  observe::IsolationPolicy isolated_ranks = observe::IsolationPolicy::kWarn;
  observe::StallPolicy stall = {};
  bool watches_waits = false;             // to name a straggler at the end
  std::chrono::nanoseconds time_limit{};  // for the job including its restarts; 0: none
  bool quiet = false;                     // no verdict on stderr for a successful job
  std::string dir_file = {};              // file that gets the path of the run directory; empty: none
  std::string dir_file_place = {};        // prefix for errors about that file
  metrics::Listening metrics = {};
};

struct Outcome {
  std::optional<verdict::Facts> facts;  // of the last generation; nullopt: it could not be started
  plan::Plan plan;                      // of that generation
  std::string run_dir;
  std::time_t started = 0;  // start of the first generation; 0: no rank was started

  // dtrun's exit code: 0 if all ranks succeeded; the code of the rank that failed first (128 + signal for a
  // signal); 130/143 after an interrupt; 2 if the job could not be started because of the user's request
  // (port in use, log folder not writable, ...).
  int exit_code() const { return facts ? verdict::ExitCode(*facts) : kUserError; }
};

// Prints header, output, and the verdict. REQUIRES: called by the work of Guarded; a planner if there is a
// cluster.
Outcome Run(const RunRequest& request, process::Lifeline& lifeline);

}  // namespace dtrun::job

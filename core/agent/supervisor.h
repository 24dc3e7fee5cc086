// Starts the processes of a plan on this host, watches them to the end, and leaves nothing
// behind.
//
// Lives on the agent's loop thread. The first process seen to fail ends the job: its own
// group is killed at once, all others are asked to stop and killed after one shared grace.
// REQUIRES: this process is a child subreaper, single purpose, and all its children are
// the job's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/asio.h"
#include "core/agent/facts.h"
#include "core/agent/lifeline.h"
#include "core/agent/spawn.h"
#include "core/output/output.h"
#include "core/plan/plan.h"

namespace dtrun::agent {

struct Job {
  plan::Plan plan;  // resolved
  std::string run_dir;
  std::vector<std::unique_ptr<output::RankOutput>> outputs;  // one per process of the plan
  int stdin_fd = -1;                                         // for rank 0; stays the caller's
  std::optional<rlim_t> open_files;                          // soft limit of the processes
  std::function<void(const std::string& line)> say;          // to the user, while the job runs
};

class Supervisor {
 public:
  // `loop` and `lifeline` must outlive it.
  static std::unique_ptr<Supervisor> Create(boost::asio::io_context& loop, Lifeline& lifeline, Job job);
  virtual ~Supervisor() = default;

  // Starts every process, then runs the loop until none is left. An error means that one
  // could not be started; those started before it are gone again.
  virtual Result<Facts> Run() = 0;

  // From the store, while Run runs. Unknown ranks are ignored.
  virtual void Joined(int rank) = 0;
  virtual void Left(int rank) = 0;
  virtual void Reported(int rank, int peer, const std::string& what) = 0;
};

}  // namespace dtrun::agent

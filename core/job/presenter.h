// How a job shows itself to the user: each command line that starts jobs has its own way.
//
// Called by the root's run (core/job/run.h) on its loop thread. What is not overridden shows nothing, and
// leaves the output of ranks where the plan has it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/output/output.h"
#include "core/plan/plan.h"

namespace dtrun::job {

class Presenter {
 public:
  virtual ~Presenter() = default;

  // Before the run makes its folder.
  virtual Status Prepare(const plan::Plan& plan) {
    (void)plan;
    return {};
  }
  // Lines for stderr, once ranks are about to start.
  virtual std::string Header(const plan::Plan& plan, const std::string& run_dir) {
    (void)plan, (void)run_dir;
    return {};
  }
  // Where the output of a rank goes; unset: to files in `logs`, the folder of the generation.
  virtual Result<std::optional<output::Routes>> RoutesOf(const plan::Plan& plan,
                                                         const std::filesystem::path& logs, int rank) {
    (void)plan, (void)logs, (void)rank;
    return {std::nullopt};
  }
};

}  // namespace dtrun::job

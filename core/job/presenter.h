// How a job is presented to the user; each command line that starts jobs has its own presenter.
//
// Called by the root's run (core/job/run.h) on its loop thread. The defaults print nothing and leave the
// ranks' output where the plan puts it.
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

}  // namespace dtrun::job

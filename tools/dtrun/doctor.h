// The verb `dtrun doctor`: checks every host of a job before the job is started. Main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

struct DoctorArguments {
  ConfigArguments config;
  bool json = false;
  std::string timeout = "20s";  // for all hosts to join
};

// Adds the verb without its config options. Parsing fills `to`, which must outlive it.
CLI::App* AddDoctor(CLI::App& app, DoctorArguments* to);
// The exit code: 0 if nothing is worse than a warning, 1 for problems, 2 if the command line or the config is
// invalid.
int Doctor(DoctorArguments arguments);

}  // namespace dtrun::cli

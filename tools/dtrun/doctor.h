// The verb `dtrun doctor`: looks at every host of a job before it is started. Main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

struct DoctorArguments {
  ConfigArguments config;
  bool json = false;
  std::string timeout = "20s";  // for all hosts to join
};

// Adds the verb but for its config options; parsing fills `to`, which must outlive it.
CLI::App* AddDoctor(CLI::App& app, DoctorArguments* to);
// The exit code: 0 when nothing worse than a warning was found, 1 with problems, 2 when the command
// line or the config cannot be read.
int Doctor(DoctorArguments arguments);

}  // namespace dtrun::cli

// The verb `dtrun env`: prints a rank's environment in a dialect. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

struct EnvArguments {
  ConfigArguments config;
  int rank = 0;
  std::string dialect;
  bool list = false;
  bool json = false;
  bool shell = false;
};

// Adds the verb without its config options. Parsing fills `to`, which must outlive it.
CLI::App* AddEnv(CLI::App& app, EnvArguments* to);
// Returns the exit code.
int ShowEnv(EnvArguments arguments);

}  // namespace dtrun::cli

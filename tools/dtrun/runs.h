// The verb `dtrun runs clean`: removes folders of ended runs. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace dtrun::cli {

struct RunsArguments {
  std::string job;       // empty: all
  std::size_t keep = 0;  // the newest of each job's folder
  bool yes = false;
  bool dry_run = false;
};

// Adds the verb and returns `clean`. Parsing fills `to`, which must outlive it.
CLI::App* AddRuns(CLI::App& app, RunsArguments* to);
// The exit code: 0; 1 if a run could not be removed or the answer was no; 2 for a user error.
int CleanRuns(const RunsArguments& arguments);

}  // namespace dtrun::cli

// The verb `dtrun trace`: writes the timeline of a run to a file. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

struct TraceArguments {
  std::string job;
  std::string out;
  std::vector<std::string> torch;
};

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddTrace(CLI::App& app, TraceArguments* to);
// The exit code: 0, or 2 for a user error.
int Trace(const TraceArguments& arguments);

}  // namespace dtrun::cli

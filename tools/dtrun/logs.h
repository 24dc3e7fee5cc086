// The verb `dtrun logs`: what the ranks of a job printed, from the files in its run folder. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace dtrun::cli {

struct LogsArguments {
  std::string job;
  std::string ranks;  // "0,4-7"; empty: all
  std::string grep;   // extended regular expression (POSIX); empty: all lines
  std::optional<std::size_t> tail;
  bool follow = false;
};

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddLogs(CLI::App& app, LogsArguments* to);
// The exit code: 0, with --follow the job's; 1 if there is nothing to read; 2 for a user error.
int Logs(const LogsArguments& arguments);

}  // namespace dtrun::cli

// The flags of a job that every verb with a config has, -n and --hosts for example, and the options that they
// stand for. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/preparation.h"

namespace dtrun::cli {

// What every verb with a config takes from its command line. A text that is empty was not given.
struct ConfigArguments : config::Request {
  std::string ranks;               // a number in all, or a word of job.processes_per_host
  std::string processes_per_host;  // on each host
  std::vector<std::string> hosts;  // lists with commas, or a number of hosts
  std::string hostfile;
  std::string host_index;
  std::string torch_backend;
  std::string time_limit;
  std::vector<std::string> plugin_dirs;
  bool quiet = false;    // of a run that goes well nothing but the output of ranks is printed
  bool verbose = false;  // the whole header, and what was assumed of the command line
  std::string color;
};

// --set and --plugin-dir; parsing fills `to`, which must outlive the verb.
void AddOverrides(CLI::App* verb, ConfigArguments* to);
// Those, --config, and what says how many ranks there are and where.
void AddJobFlags(CLI::App* verb, ConfigArguments* to);

// The config with what the flags set, the flag as origin.
launch::Preparation Load(const ConfigArguments& arguments);
// Unset after saying on stderr what is wrong with it.
std::optional<launch::Preparation> LoadOrExplain(const ConfigArguments& arguments);
// Says so; returns the exit code.
int PrintProblems(const std::vector<config::Problem>& problems);
// An error of the user's, likewise.
int Complain(const Error& error);

}  // namespace dtrun::cli

// The job flags shared by all verbs with a config, such as -n and --hosts, and their options. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/preparation.h"

namespace dtrun::cli {

// Command-line arguments of every verb with a config. An empty text was not given.
struct ConfigArguments : spec::Request {
  std::string ranks;               // a total number, or a keyword of job.processes_per_host
  std::string processes_per_host;  // on each host
  std::vector<std::string> hosts;  // comma-separated lists, or a number of hosts
  std::string hostfile;
  std::string host_index;
  std::string torch_backend;
  std::string time_limit;
  std::vector<std::string> plugin_dirs;
  bool quiet = false;    // a successful run prints only the output of ranks
  bool verbose = false;  // the whole header, and assumptions about the command line
  std::string color;
};

// An option that may be given several times, with one value each.
CLI::Option* AddRepeated(CLI::App* verb, const char* names, std::vector<std::string>* to, const char* help);
// Adds --set and --plugin-dir. Parsing fills `to`, which must outlive the verb.
void AddOverrides(CLI::App* verb, ConfigArguments* to);
// Adds the same, --config, and the flags for ranks and hosts.
void AddJobFlags(CLI::App* verb, ConfigArguments* to);

// The config with the flags applied. The flag is recorded as the origin.
launch::Preparation Load(const ConfigArguments& arguments);
// Unset, after an error message on stderr, if it is invalid.
std::optional<launch::Preparation> LoadOrExplain(const ConfigArguments& arguments);
// Prints the problems and returns the exit code.
int PrintProblems(const std::vector<spec::Problem>& problems);
// The same for a user error.
int Complain(const Error& error);
int Complain(const std::string& text);

}  // namespace dtrun::cli

// The command line of dtrun-conformance. Values and pure functions; any thread.
#pragma once

#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtrun::conformance::tool {

// A mistake in the command line; names the argument and the next step.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A flag as help and manual page show it.
struct Flag {
  const char* name;   // "--plugin"
  const char* value;  // "FILE"; null: it takes none
  const char* text;
};
std::span<const Flag> Flags();

struct Arguments {
  std::string plugin;
  int world = 7;
  bool world_given = false;
  int repeat = 1;
  std::string only;
  std::string profile;
  unsigned seed = 20261121;
  std::string junit;
  bool list = false;
  bool wide = false;
  int timeout = 120;                               // seconds
  std::map<std::string, std::string> options;      // of the plugin
  std::map<std::string, std::string> environment;  // that a launcher is asked in
  std::string launch;
  bool help = false, version = false, manual_page = false;

  // For the processes that it starts, one case each; internal.
  std::string run_case;  // "Suite.Case"
  std::string record;    // the file for its result
  std::string shared;    // the folder that launched ranks share
};

// Throws UsageError.
Arguments ReadArguments(const std::vector<std::string>& words);

}  // namespace dtrun::conformance::tool

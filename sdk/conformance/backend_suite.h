// What every backend must do, as GoogleTest cases that a plugin's test inherits:
//
//   const bool kRegistered = dtrun::conformance::RegisterBackendSuite({.plugin = PLUGIN_FILE});
//
// The suite loads the plugin file as core would, gives it a small host of its own and runs
// the ranks as threads, or as processes where one is to be killed. A library that allows one
// rank per process is started by its own launcher instead: `process`. It needs the SDK's
// headers and GoogleTest only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtrun::conformance {

// The place of this process among those that a launcher started, one per rank. Each runs the
// same cases in the same order and plays its own rank in those of `size` ranks; the others are
// skipped.
struct LaunchedProcess {
  int rank = 0;
  int size = 0;  // 0: not launched, ranks are threads of this process
  std::string folder =
      {};  // shared by the processes of one launch, empty at its start; unused when size is 1
};

struct BackendUnderTest {
  std::string plugin = {};                          // path of libdtrun_backend_<name>.so
  std::map<std::string, std::string> options = {};  // values of the plugin's options, as text
  // Of a launcher: what find_hosts and connect are asked in, the variables of an allocation.
  std::map<std::string, std::string> environment = {};
  std::vector<int> worlds = {1, 2, 3, 4, 7};  // numbers of ranks to try everything in
  std::vector<int> more_worlds = {5};         // in which only the calls that are drawn at random are tried
  LaunchedProcess process = {};
  // Cases that this backend cannot pass, as "Suite.Case", and why; they are skipped with that reason. A name
  // that no case has fails the run.
  std::map<std::string, std::string> skips = {};
  int most_ranks = 0;        // cases that need more are skipped; 0: no limit
  unsigned seed = 20261121;  // of the calls that are drawn at random
  bool wide = false;         // what takes too long for each run, too: more choices, and more time that passes
};

// Reads rank and size from the variables that a launcher sets and the folder from a third one. A process of
// which the launcher's variables are unset is rank 0 of 1. Throws std::invalid_argument on a value that is no
// number, or when there are several ranks and no folder.
LaunchedProcess ProcessFromEnvironment(const char* rank_variable, const char* size_variable,
                                       const char* folder_variable);

// Call one of them once, before main. Each returns true, so that it can initialise a constant.
bool RegisterBackendSuite(const BackendUnderTest& backend);
bool RegisterLauncherSuite(const BackendUnderTest& launcher);
bool RegisterDeviceSuite(const BackendUnderTest& device);

// The rules of docs/abi.md that a registered case proves, such as "C4, F2", by "Suite.Case"; empty for
// others. The results of a run have them as the property "rule".
std::string RulesOf(const std::string& name);

}  // namespace dtrun::conformance

// What every backend must do, as GoogleTest cases that a plugin's test inherits:
//
//   const bool kRegistered = dtrun::conformance::RegisterBackendSuite({.plugin = PLUGIN_FILE});
//
// The suite loads the plugin file as core would, gives it a small host of its own and runs
// the ranks as threads, or as processes where one is to be killed. It needs the SDK's
// headers and GoogleTest only.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dtrun::conformance {

struct BackendUnderTest {
  std::string plugin = {};                     // path of libdtrun_backend_<name>.so
  std::map<std::string, std::string> options = {};  // values of the plugin's options, as text
  std::vector<int> worlds = {1, 2, 3, 4};      // numbers of ranks to try
};

// Call once, before main. Returns true, so that it can initialise a constant.
bool RegisterBackendSuite(BackendUnderTest backend);

}  // namespace dtrun::conformance

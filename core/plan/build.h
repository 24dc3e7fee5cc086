// Builds the plan from the spec: the rank table, the command, and each rank's environment.
//
// Pure except for looking up the command in PATH, so the same spec on the same hardware give
// the same plan. Called on the launching process's main thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/network/decision.h"
#include "core/plan/hosts.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"
#include "core/plugin/plugin.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// The chosen backend, after a probe on every host has described and queried it.
struct Backend {
  std::string name;                      // "none": no communicator
  std::string path;                      // of the plugin file
  std::string options_json;              // snapshot as options::ToJson
  std::vector<plugin::LaunchInfo> info;  // by host; hosts beyond the end are assumed to equal the first
  std::string stack = {};                // with those that it stands on: "delay > gloo"; empty: `name`
  const std::string& shown() const { return stack.empty() ? name : stack; }
};

// A device plugin that ranks may load.
struct DevicePlugin {
  std::string name;     // "cuda"
  std::string path;     // of the plugin file
  std::string id = {};  // required id of the file; empty: any
};

// What is known of device memory, as opposed to host memory.
struct DeviceMemory {
  bool asked = false;              // the backends were queried for the memory they move
  bool named = false;              // backend.name has a backend for it
  std::string kind = {};           // the device kind in backend.name: "cuda"; empty: the GPUs' kind
  std::optional<Backend> backend;  // moves device memory, beside the host-memory backend
  bool by_host = false;            // the host-memory backend moves it too
  std::string why_not = {};        // why there is no backend for it
  std::vector<DevicePlugin> plugins = {};
  std::string no_plugins = {};  // why other device plugins are missing from `plugins`
};

struct Inputs {
  const spec::JobSpec& spec;
  plugin::Probe& launcher;
  Backend backend;                                 // for host memory
  Hardware hardware;                               // of this host
  std::map<std::string, std::string> environment;  // of the launching process; inherited by ranks
  std::string cwd;                                 // the folder in which dtrun was started
  std::string program;                             // path of dtrun, the same on all hosts
  std::vector<Hardware> reported = {};             // of the job's hosts, after they have joined
  const network::Decision* network = nullptr;      // set after the network was connected
  bool find_programs = true;                       // false: the plan is only checked, never run
  DeviceMemory device = {};
};

// Errors start with the place of the value that caused them.
Result<Plan> Build(const Inputs& inputs);

}  // namespace dtrun::plan

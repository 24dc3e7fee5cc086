// From settings to plan: the rank table, the command, and each rank's environment.
//
// Pure but for looking up the command in PATH, so the same settings on the same hardware
// give the same plan. Called on the launching process's main thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/network/decision.h"
#include "core/plan/hosts.h"
#include "core/plan/place.h"
#include "core/plan/plan.h"
#include "core/plugin/plugin.h"

namespace dtrun::plan {

// The backend as chosen: found, described and asked by a probe on every host.
struct Backend {
  std::string name;                      // "none": no communicator
  std::string path;                      // of the plugin file
  std::string options_json;              // options::ToJson of its snapshot
  std::vector<plugin::LaunchInfo> info;  // by host; fewer: the others are taken to be like the first
};

// A plugin of devices, which ranks may load.
struct DevicePlugin {
  std::string name;     // "cuda"
  std::string path;     // of the plugin file
  std::string id = {};  // that the file must have; empty: any
};

// What is known of device memory beside the host's.
struct DeviceMemory {
  bool asked = false;              // the backends were asked what they move
  bool named = false;              // backend.name gives a backend for it
  std::string kind = {};           // whose memory backend.name gives: "cuda"; empty: that of the GPUs
  std::optional<Backend> backend;  // that moves it, beside the host's
  bool by_host = false;            // the host's backend moves it too
  std::string why_not = {};        // why there is none
  std::vector<DevicePlugin> plugins = {};
  std::string no_plugins = {};  // why others are not among them
};

struct Inputs {
  const config::Settings& settings;
  plugin::Probe& launcher;
  Backend backend;                                 // of the host's memory
  Hardware hardware;                               // of this host
  std::map<std::string, std::string> environment;  // of the launching process: what ranks inherit
  std::string cwd;                                 // where dtrun was started
  std::string program;                             // dtrun itself, on all hosts
  std::vector<Hardware> reported = {};             // of the job's hosts, once they have joined
  const network::Decision* network = nullptr;      // once it has been connected
  bool find_programs = true;                       // false: the plan is to be checked, never run
  DeviceMemory device = {};
};

// Errors carry the place of the value that caused them.
Result<Plan> Build(const Inputs& inputs);

}  // namespace dtrun::plan

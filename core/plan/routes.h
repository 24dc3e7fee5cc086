// What moves which kind of memory, as the ranks and the user are told.
//
// A step of Build (core/plan/build.h). Pure; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/plan/build.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

struct RouteInputs {
  const config::Settings& settings;
  const DeviceMemory& device;
  const Hardware& hardware;               // of this host
  const std::vector<Hardware>& reported;  // of the job's, once they have joined
  const network::Decision* network;       // null: none was looked for
};

// Gives the plan its backend of device memory and, where the job can have devices, a line for each route.
// Errors carry the place of the value that caused them. REQUIRES: the plan has its hosts, its backend and the
// facts of that.
Status AddRoutes(const RouteInputs& inputs, Plan* plan);

// What a rank of that host needs for them. Where no device is to be expected too: only the plugins can say
// why there is none.
std::map<std::string, std::string> DeviceVariables(const RouteInputs& inputs, std::size_t host);

}  // namespace dtrun::plan

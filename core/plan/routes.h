// Describes to ranks and the user which backend moves which kind of memory.
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
  const spec::JobSpec& spec;
  const DeviceMemory& device;
  const Hardware& hardware;               // of this host
  const std::vector<Hardware>& reported;  // of the job's hosts, after they have joined
  const network::Decision* network;       // null: not determined
};

// Sets the plan's device-memory backend and, if the job can have devices, a line for each route. Errors carry
// the place of the value that caused them. REQUIRES: the plan has its hosts, its backend and the backend's
// facts.
Status AddRoutes(const RouteInputs& inputs, Plan* plan);

// The variables that a rank of that host needs for the routes. Set also if no device is expected: only the
// plugins can explain why there is none.
std::map<std::string, std::string> DeviceVariables(const RouteInputs& inputs, std::size_t host);

}  // namespace dtrun::plan

// The variables that dtrun itself sets for the processes of a job: common ones, those of a host, and the rank's own.
//
// A step of Build (core/plan/build.h). Pure; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/base/process_variables.h"
#include "core/plan/build.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

struct CommonDialect {
  std::shared_ptr<const ProcessVariables::Map> shown;
  ProcessVariables::Map hidden;  // must not be expanded in placeholders
};

CommonDialect CommonDialectOf(const Inputs& inputs, const Plan& plan);

// Additional variables for the processes of one host.
struct OfHost {
  ProcessVariables::Map own;     // dtrun's dialect
  ProcessVariables::Map vendor;  // for the backend's library
};

ProcessVariables::Map HostDialect(const Inputs& inputs, const Plan& plan, std::size_t host);

// The rank's identity. REQUIRES: its host is one of the plan's.
void AddRank(const Plan& plan, const Process& process, ProcessVariables* out);

}  // namespace dtrun::plan

// Python modules that hosts must have (python.modules, backend.torch): the query, and what an answer means.
// `program` is what ranks run. Pure but for the environment; any thread.
#pragma once

#include <string>

#include "core/preflight/modules.h"
#include "core/spec/job_spec.h"

namespace dtrun::launch {

Result<preflight::ModuleRequest> ModulesToAsk(const spec::JobSpec& spec, const std::string& program);

// An error if the host lacks a module; `missing` is its answer, or empty.
Status CheckModules(const spec::JobSpec& spec, const std::string& program, const std::string& host,
                    const std::string& missing);

}  // namespace dtrun::launch

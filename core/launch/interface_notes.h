// For a job on one host: reports rank variables that name a network interface which this host lacks. Reads
// the host's interfaces only if there are such variables. The launching process's main thread.
#pragma once

#include "core/spec/job_spec.h"
#include "core/plan/plan.h"

namespace dtrun::launch {

// Adds them to the plan's warnings. On several hosts the connectivity checks report them.
void AddInterfaceNotes(const spec::JobSpec& spec, plan::Plan* plan);

}  // namespace dtrun::launch

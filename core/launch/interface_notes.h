// For a job on one host: reports rank variables that name a network interface which this host lacks. Reads
// the host's interfaces only if there are such variables. The launching process's main thread.
#pragma once

#include "core/config/settings.h"
#include "core/plan/plan.h"

namespace dtrun::launch {

// Adds them to the plan's warnings. On several hosts the connectivity checks report them.
void AddInterfaceNotes(const config::Settings& settings, plan::Plan* plan);

}  // namespace dtrun::launch

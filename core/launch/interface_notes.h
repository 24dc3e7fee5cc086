// Of a job on one host: variables of its ranks that name an interface which this host lacks. Reads the host's
// interfaces where there are such variables; the launching process's main thread.
#pragma once

#include "core/config/settings.h"
#include "core/plan/plan.h"

namespace dtrun::launch {

// Adds them to the plan's warnings. Of several hosts the connectivity checks tell it.
void AddInterfaceNotes(const config::Settings& settings, plan::Plan* plan);

}  // namespace dtrun::launch

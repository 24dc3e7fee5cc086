// The extensions that the backends of a communicator offer to programs: dtrun_comm_extension.
//
// Calls plugins, without state of its own; any thread.
#pragma once

#include <span>

#include "core/comm/comm_state.h"
#include "dtrun/dtrun.h"

namespace dtrun::comm {

// Asks the plugin of each route, and then those that it stands on. `routes` may have null ones; `id` may be
// null.
Result<dtrun_extension> FindExtension(const Making& making, std::span<const Route* const> routes,
                                      const char* id);

}  // namespace dtrun::comm

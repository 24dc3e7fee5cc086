// The shared-memory engine as a backend: the table that core puts before the plugin's for
// ranks of one host (docs/decisions/005-shared-memory.md). The plugin table around it exists for
// the tests, which drive the engine as they drive every transport. Constant tables; any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::shm {

// Complete, with init and shutdown; "shm".
const dtrun_plugin& EnginePlugin();

}  // namespace dtrun::shm

// Reads the processors of this machine. The only user of hwloc.
//
// Without hwloc, each processor counts as its own core, all in one NUMA node: enough to count them,
// but not to bind ranks. No state; any thread.
#pragma once

#include <string>

#include "core/binding/topology.h"

namespace dtrun::binding {

// False: this dtrun was built without hwloc.
bool KnowsMachine();

// The processors that the calling thread may run on, after cgroups and dtrun's affinity mask. Main
// thread: it briefly changes the environment to hide hwloc's plugins.
Result<Topology> ReadMachine();

// For tests: a synthetic machine of hwloc, "pack:2 numa:2 core:8 pu:2". An error without hwloc.
Result<Topology> ImagineMachine(const std::string& synthetic);

}  // namespace dtrun::binding

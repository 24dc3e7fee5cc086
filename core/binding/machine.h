// Reads the processors of this machine. The only user of hwloc.
//
// Built without hwloc, each processor counts as a core of its own and all as one NUMA node,
// which is enough to count them and too little to bind ranks to them. No state; any thread.
#pragma once

#include <string>

#include "core/binding/topology.h"

namespace dtrun::binding {

// False: this dtrun was built without hwloc.
bool KnowsMachine();

// What the calling thread may run on, after cgroups and the affinity mask that dtrun was
// given. Main thread: it hides hwloc's plugins for a moment, through the environment.
Result<Topology> ReadMachine();

// Of a machine that hwloc imagines, "pack:2 numa:2 core:8 pu:2": for tests. An error without hwloc.
Result<Topology> ImagineMachine(const std::string& synthetic);

}  // namespace dtrun::binding

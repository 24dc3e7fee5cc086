// The hosts of a Slurm allocation, and the step that starts dtrun on them: srun(1). Pure; any thread.
#pragma once

#include <vector>

#include "dtrun/plugin.hpp"

namespace dtrun::slurm {

// In a batch script or under salloc dtrun is started once; in a step (srun) once per task, of which there
// must be one per host. Throws sdk::Failure.
sdk::Allocation FindHosts(const sdk::HostsQuery& query);

// One step of Slurm with an agent on each of these nodes of the allocation. Its agents are told apart by the
// name that Slurm has for their node.
std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query);

}  // namespace dtrun::slurm

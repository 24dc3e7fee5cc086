// How mpirun's daemons are started on the other hosts of a job: mpirun on host 0 runs what it takes
// for a remote shell, which leaves the command in the job's store; the process that the plan has
// on that host waits for it there and becomes the daemon.
//
// So daemons and ranks are children of their host's agent and end with it, mpirun needs no
// ssh of its own, and every rank inherits what the plan says of its host. Main thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::mpirun {

// Names of the job's hosts, in order, with commas between them: set by the launcher.
inline constexpr char kHosts[] = "DTRUN_MPI_HOSTS";
// By which a Hydra calls that remote shell; set by the launcher too, and none of the ranks' business.
inline constexpr char kHydraArguments[] = "HYDRA_LAUNCHER_EXTRA_ARGS";

// The place of `name`, as mpirun spells it (it may have cut off the domain), in `hosts`.
Result<int> IndexOf(const std::string& name, const std::string& hosts);

// Leaves a command for host `index` of the job that this process belongs to.
Status LeaveCommand(int index, const std::string& command);
// Waits for the one that is left for host `index`; for ever, because the agent ends a job whose
// mpirun fails.
Result<std::string> AwaitCommand(int index);

}  // namespace dtrun::mpirun

// Starts mpirun's daemons on the other hosts of a job. mpirun on host 0 runs dtrun as its remote shell, which
// leaves the command in the job's store. The planned process on the other host waits for the command and
// becomes the daemon.
//
// Daemons and ranks are therefore children of their host's agent and end with it. mpirun needs no ssh, and
// every rank inherits the plan's environment for its host. Main thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::mpirun {

// The names of the job's hosts, in order, comma-separated. Set by the launcher.
inline constexpr char kHosts[] = "DTRUN_MPI_HOSTS";
// The variable through which Hydra calls that remote shell. Also set by the launcher; not for ranks.
inline constexpr char kHydraArguments[] = "HYDRA_LAUNCHER_EXTRA_ARGS";

// The index in `hosts` of `name` as spelled by mpirun, which may omit the domain.
Result<int> IndexOf(const std::string& name, const std::string& hosts);

// Leaves a command for host `index` of this process's job.
Status LeaveCommand(int index, const std::string& command);
// Waits for the command for host `index`, without a timeout: the agent ends the job if mpirun fails.
Result<std::string> AwaitCommand(int index);

}  // namespace dtrun::mpirun

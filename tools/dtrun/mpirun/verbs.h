// dtrun's hidden verbs for the mpirun launcher's plan. Each becomes another program, or returns an exit code
// after an error message on stderr.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::mpirun {

// `words` of dtrun's command line, without its name: nothing when they are none of these verbs.
//
//   mpi-rank [--host] COMMAND...   started by mpirun: becomes a rank of the job, or with --host
//                                  the one process of a host
//   mpi-shell HOST COMMAND...      mpirun's remote shell
//   mpi-daemon                     what waits on the other hosts for mpirun's daemon
std::optional<int> Main(const std::vector<std::string>& words);

}  // namespace dtrun::mpirun

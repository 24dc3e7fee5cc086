// Stands between mpirun and a rank: waits for the rank's exit and reports its status to the agent.
//
// mpirun does not report which rank failed first, and its exit code alone does not tell how. Hydra does not
// even end a job if a rank exits with an error before MPI_Init. Main thread of a single-threaded process.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/base/fd.h"

namespace dtrun::mpirun {

inline constexpr int kNotStarted = 127;  // exit code, as in shells

// Called periodically with the rank's process, because programs load libraries over time.
enum class Look {
  kAgain,
  kEnough,
  kEnd,  // terminate the rank, as with exit code 1
};

// Runs `become` in a child of the same process group, so that mpirun's signals reach it. Does not return:
// reports the child's ending to `agent` (core/process/rank_fifo.h) and ends the same way. The child does not
// outlive this process, which keeps mpirun's pipes open: if they are closed early, Hydra's proxy only waits
// for ranks and ignores signals. Returns an exit code, after an error message, only if no child can be
// created.
int Attend(const UniqueFd& agent, const std::function<int()>& become,
           const std::function<Look(pid_t rank)>& look);

}  // namespace dtrun::mpirun

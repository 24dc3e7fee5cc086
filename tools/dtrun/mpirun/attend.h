// Between an mpirun and a rank: waits for the rank's end and reports its exit status to the agent.
//
// An mpirun tells neither which rank failed first nor, in its own exit code alone, how; a Hydra does not even
// end a job whose rank exits with an error before MPI_Init. Main thread, of a process with a single one.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/base/fd.h"

namespace dtrun::mpirun {

inline constexpr int kNotStarted = 127;  // the exit code for it, as shells have it

// Called now and then with the rank's process, as its programs load what they need.
enum class Look {
  kAgain,
  kEnough,
  kEnd,  // it is to end, as with exit code 1
};

// Runs `become` in a child of the same process group, where signals of an mpirun reach it, and does not
// return: ends as the child ended, after writing that to `agent` (core/process/rank_fifo.h). The child does
// not outlive this process, which keeps the mpirun's pipes open meanwhile: where they are closed early, a
// Hydra's proxy waits for ranks alone and hears no signal. Returns an exit code only when there can be no
// child, after saying why.
int Attend(const UniqueFd& agent, const std::function<int()>& become,
           const std::function<Look(pid_t rank)>& look);

}  // namespace dtrun::mpirun

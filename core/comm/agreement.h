// Decides whether all ranks of a communicator may connect their devices. Each rank publishes what it would
// use, or why it cannot. All ranks learn the result as soon as one cannot, or once all can.
//
// Collective over the communicator's key-value space; one call at a time, from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/comm/communicator.h"

namespace dtrun::comm {

// `attempt` is the same on all ranks. `mine`: "cuda memory by nccl", or why this rank refuses. A refusal is
// returned here and becomes a DTRUN_REMOTE_FAILURE of this rank on the others. No rank is connected then, and
// all may retry. A mismatch or a missing rank is an error on all ranks. `usable` is polled while this rank
// waits; its error ends the wait.
Status Agree(const Making& making, int attempt, const std::string& device, const Result<std::string>& mine,
             const std::function<Status()>& usable);

}  // namespace dtrun::comm

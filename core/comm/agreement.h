// Whether all ranks of a communicator may connect their devices: each says what it would use or why it
// cannot, and all learn the answer as soon as one cannot, or when all can.
//
// Collective, over the communicator's key-value space; one call at a time, from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/comm/communicator.h"

namespace dtrun::comm {

// `attempt` is the same on all ranks. `mine`: "cuda memory by nccl", or why this rank refuses, which is
// returned here and is DTRUN_REMOTE_FAILURE of this rank on the others; no rank is connected then, and all
// may try again. A mismatch or a rank that does not come is an error of all. `usable`: asked while this rank
// waits; its error ends that.
Status Agree(const Making& making, int attempt, const std::string& device, const Result<std::string>& mine,
             const std::function<Status()>& usable);

}  // namespace dtrun::comm

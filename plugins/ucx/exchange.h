// Collectives in the memory of devices, which no processor may touch: parts go straight from buffer to
// buffer, a rank's own part as a message to itself.
//
// Used by the thread that drives an Engine.
#pragma once

#include <cstdint>

#include "messenger.h"

namespace dtrun::ucx_plugin {

// Whether `kind` can be carried so: nothing is combined, and no form of it needs memory beside its buffers.
bool MovesOnDevices(std::int32_t kind);

// REQUIRES: `op` is a collective and MovesOnDevices.
void RunOnDevices(WorkerMessenger& messenger, const dtrun_op& op);

}  // namespace dtrun::ucx_plugin

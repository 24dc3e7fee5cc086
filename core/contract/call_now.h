// Which collective a rank is in, by dtrun's flight recorder.
//
// Pure functions over shared memory; the agent's loop thread.
#pragma once

#include <optional>

#include "core/contract/recorded_call.h"
#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

// The oldest call under way of world rank `rank`, else its last one. Unset: it has called no collective, or
// its pages are invalid.
std::optional<RecordedCall> CallOf(const RecorderMemory& recorder_memory, int rank);

}  // namespace dtrun::contract

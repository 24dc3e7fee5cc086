// Which collective or message a rank is in, by dtrun's flight recorder.
//
// Pure functions over shared memory; the agent's loop thread.
#pragma once

#include <optional>

#include "core/contract/recorded_call.h"
#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

// The oldest collective under way of world rank `rank`, else a message, else its last collective. Unset: it
// has not joined, or its pages are invalid.
std::optional<RecordedCall> CallOf(const RecorderMemory& recorder_memory, int rank);

}  // namespace dtrun::contract

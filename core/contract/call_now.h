// Which collective or message a rank is in, by dtrun's flight recorder.
//
// Pure functions over shared memory; the agent's loop thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/contract/awaited.h"
#include "core/contract/recorded_call.h"
#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

struct CallNow {
  RecordedCall call;
  // Of a call under way. Waits for none as far as is known: it has calls on several communicators.
  std::optional<Awaited> awaited;
};

// The oldest collective under way of world rank `rank`, else a message, else its last collective. Unset: it
// has not joined, or its pages are invalid.
std::optional<CallNow> CallOf(const RecorderMemory& recorder_memory, int rank);

// The communicators of world rank `rank`.
std::vector<Membership> GroupsOf(const RecorderMemory& recorder_memory, int rank);

// Changes when world rank `rank`, of this host, begins or ends a collective or a message.
std::uint64_t ProgressOf(const RecorderMemory& recorder_memory, int rank);

}  // namespace dtrun::contract

// Which collective a rank is in, by the flight recorder.
//
// Pure functions over shared memory; the agent's loop thread.
#pragma once

#include <optional>
#include <string>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

struct CallNow {
  bool under_way = false;
  std::string text;  // "allreduce #7 on 'world' (float32 x 8, sum)"; not under way: "no collective after #6
                     // on 'world'"
};

// The oldest call under way of world rank `rank`, else its last one. Unset: it has called no collective, or
// its pages are invalid.
std::optional<CallNow> CallOf(const RecorderMemory& recorder_memory, int rank);

}  // namespace dtrun::contract

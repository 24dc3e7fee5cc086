// torch's DataLoader: whether a thread waits for its workers, and where in the program a worker is.
//
// Pure; any thread. `frames`: innermost first.
#pragma once

#include <optional>
#include <vector>

#include "core/stacks/place.h"

namespace dtrun::stacks {

// Whether the thread waits for a batch that worker processes make.
bool WaitsForLoader(const std::vector<Frame>& frames);

bool IsWorker(const std::vector<Frame>& frames);

// Where a worker works on a batch; nullopt if it waits for work or is not a worker.
std::optional<Place> PlaceInWorker(const std::vector<Frame>& frames, const Source& source);

}  // namespace dtrun::stacks

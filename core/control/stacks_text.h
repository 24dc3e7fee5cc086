// The stacks of a job's ranks as text: equal stacks once, with the ranks that have them.
//
// Pure; any thread.
#pragma once

#include <string>

#include "core/control/messages.h"

namespace dtrun::control {

// Lines; what most ranks do comes first. `all_threads`: a line for each thread without Python frames, too.
std::string StacksText(const Answer& answer, bool all_threads);

}  // namespace dtrun::control

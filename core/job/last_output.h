// The end of a job's output: what the console still holds once all ranks have ended.
//
// Called by the root, on its main thread.
#pragma once

#include <cstdint>

#include "core/output/output.h"
#include "core/process/lifeline.h"

namespace dtrun::job {

// Waits until all output is written, as long as the reader takes; a few seconds only once the user has asked
// the job to end (`ended`: already). Returns the number of lines not shown; the log files have them.
std::uint64_t ShowTheRest(output::Console& console, process::Lifeline& lifeline, bool ended);

}  // namespace dtrun::job

// `dtrun torchrun` and `dtrun torch.distributed.launch`: torchrun's command lines on dtrun's
// engine. Main thread.
#pragma once

#include <string>
#include <vector>

#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::cli {

enum class Purpose { kRun, kPlanText, kPlanJson };

// Returns the exit code: 0, 1 when a rank failed or a signal ended the job, 2 when the
// command line is wrong or what it asks for cannot be had here.
int Torchrun(torchrun::Program program, const std::vector<std::string>& words, Purpose purpose);

}  // namespace dtrun::cli

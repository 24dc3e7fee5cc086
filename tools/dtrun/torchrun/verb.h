// `dtrun torchrun` and `dtrun torch.distributed.launch`: run torchrun command lines on dtrun. Main thread.
#pragma once

#include <string>
#include <vector>

#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::cli {

enum class Purpose { kRun, kPlanText, kPlanJson };

// Returns the exit code: 0; 1 if a rank failed or a signal ended the job; 2 if the command line is invalid or
// its request cannot be fulfilled here.
int Torchrun(torchrun::Program program, const std::vector<std::string>& words, Purpose purpose);

}  // namespace dtrun::cli

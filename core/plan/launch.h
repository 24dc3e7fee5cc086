// Asks a launcher plugin, in its probe, for the processes of a job. Main thread of the launching process.
#pragma once

#include <string>
#include <vector>

#include "core/plan/build.h"

namespace dtrun::plan {

struct Launched {
  std::vector<Process> processes;  // by rank, environment: the launcher's contract only
  std::vector<std::string> notes;
};

// Checks what the plugin answers: every rank exactly once, hosts that exist, a command. A
// launcher that breaks this is named in the error.
Result<Launched> AskLauncher(const Inputs& inputs, const Plan& plan, const std::vector<std::string>& command,
                             const std::string& cwd);

}  // namespace dtrun::plan

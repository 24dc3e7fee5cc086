// Asks a launcher plugin, in its probe, for the processes of a job. Main thread of the launching process.
#pragma once

#include <string>
#include <vector>

#include "core/plan/build.h"

namespace dtrun::plan {

struct Launched {
  std::vector<Process> processes;  // by rank; environment has only the launcher's contract
  std::vector<std::string> notes;
};

// Validates the plugin's answer: every rank exactly once, existing hosts, a command. The error for
// a violation names the launcher.
Result<Launched> AskLauncher(const Inputs& inputs, const Plan& plan, const std::vector<std::string>& command,
                             const std::string& cwd);

}  // namespace dtrun::plan

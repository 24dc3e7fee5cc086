// The verbs of `dtrun`. Each prints its result and returns the exit code: 0, or 2 for a user error that is
// explained on stderr. Main thread.
#pragma once

#include <string>

#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

int Run(const ConfigArguments& arguments);
int RunAgent();  // on another host, started by its root
int ShowPlan(const ConfigArguments& arguments, bool json);
int ListPlugins(const ConfigArguments& arguments, bool json, bool names_only);
int DescribePlugin(const ConfigArguments& arguments, const std::string& name, const std::string& kind,
                   bool json);

}  // namespace dtrun::cli

// Variables of the name DTRUN_... that do nothing: misspelt, or for ranks alone. (A misspelt DTRUN_CONFIG_...
// is an error: core/config.)
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/environments/dialect.h"

namespace dtrun::plan {

// A note for each of them in `environment`; `options`: the variables of the options, DTRUN_CONFIG_...
std::vector<std::string> IgnoredVariables(const environments::Variables& environment,
                                          const std::vector<std::string>& options);

}  // namespace dtrun::plan

// Expands "${RANK}" in arguments and environment values. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/process_variables.h"
#include "core/base/result.h"

namespace dtrun::plan {

// Replaces each "${NAME}" by its variable and "$${" by "${"; any other "$" stays. An unknown or
// unclosed name is an error that shows the nearest name and the escape.
Result<std::string> Expand(std::string_view text, const ProcessVariables& variables);

}  // namespace dtrun::plan

// "${RANK}" in arguments and environment values. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::plan {

// Replaces each "${NAME}" by its variable and "$${" by "${"; a "$" anywhere else stays. An
// unknown or unclosed name is an error that lists the nearest name and the escape.
Result<std::string> Expand(std::string_view text, const std::map<std::string, std::string>& variables);

}  // namespace dtrun::plan

// Assigns a value to one option. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// REQUIRES: `name` is in Options() and takes a value. Errors state the expected value. `choices`: whether to
// restrict --start-method to its choices; torchrun does so only on the command line.
Status Assign(std::string_view name, const std::string& text, bool choices, Arguments* to);

// REQUIRES: `name` is in Options() and is a flag other than help.
void SetFlag(std::string_view name, bool on, Arguments* to);

}  // namespace dtrun::torchrun

// Gives one option its value. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// REQUIRES: `name` is in Options() and takes a value. Errors say what was expected.
// `choices`: whether --start-method is held to them, which torchrun does on the command
// line only.
Status Assign(std::string_view name, const std::string& text, bool choices, Arguments* to);

// REQUIRES: `name` is in Options() and is a flag other than help.
void SetFlag(std::string_view name, bool on, Arguments* to);

}  // namespace dtrun::torchrun

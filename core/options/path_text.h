// Expands ~ and ${NAME} in paths that users write, as a shell would.
//
// Reads this process's environment; any thread while the environment does not change.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::options {

// Replaces a leading "~" or "~/" by HOME, "${NAME}" by that variable, and "$$" by "$". An error names what
// cannot be expanded: "~user", "$NAME" without braces, an unset variable.
Result<std::string> ExpandPath(std::string_view text);

// For messages: `path`, which is absolute, relative to the current folder if it lies below it; otherwise
// unchanged.
std::string ShownPath(const std::string& path);

}  // namespace dtrun::options

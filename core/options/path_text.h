// Paths as users write them: ~ and ${NAME} stand for what a shell would put there.
//
// Reads this process's environment; any thread while nobody changes that.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::options {

// `text` with a leading "~" or "~/" as HOME, "${NAME}" as that variable, and "$$" as "$". An error says what
// cannot be put there: "~user", "$NAME" without braces, a variable that is not set.
Result<std::string> ExpandPath(std::string_view text);

// The absolute `path` relative to the current folder where it is below that, for messages; else itself.
std::string ShownPath(const std::string& path);

}  // namespace dtrun::options

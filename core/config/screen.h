// What stands between a text that anybody may have written and toml++: what that library must not see, for it
// assumes what it has not checked (toml++ 3.3 asserts in parse_key, or goes on undefined without assertions,
// and cannot tell most characters beyond ASCII from whitespace).
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/config/document.h"

namespace dtrun::config {

// The text to read instead, which means the same, or the first thing that TOML does not allow or that would
// take too much of the stack.
std::variant<std::string, SyntaxError> Screen(std::string_view text);

}  // namespace dtrun::config

// Screens untrusted text before toml++ parses it and rejects or rewrites what toml++ does not check. toml++
// 3.3 asserts in parse_key, or has undefined behaviour without assertions. It also mistakes most non-ASCII
// characters for whitespace.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/spec/document.h"

namespace dtrun::spec {

// Returns equivalent text that is safe to parse, or the first error: invalid TOML, or nesting that would use
// too much stack.
std::variant<std::string, SyntaxError> Screen(std::string_view text);

}  // namespace dtrun::spec

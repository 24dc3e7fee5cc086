// What to write instead of a line that is not TOML: the slips of people who know YAML, JSON or Python.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/config/document.h"

namespace dtrun::config {

// A hint for `error`, found in `text`; empty when nothing is known of its kind.
std::string SyntaxHint(const SyntaxError& error, std::string_view text);

}  // namespace dtrun::config

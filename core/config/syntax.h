// What to write instead of a line that is not TOML: the slips of people who know YAML, JSON or Python.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/config/document.h"

namespace dtrun::config {

struct SyntaxProblem {
  Position at;
  std::string message;
  std::string hint;  // empty when nothing is known of its kind
};

// `error`, found in `text`, where it was made rather than where it was noticed.
SyntaxProblem Diagnose(const SyntaxError& error, std::string_view text);

}  // namespace dtrun::config

// Suggests valid TOML for a malformed line: common mistakes of YAML, JSON and Python users.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/spec/document.h"

namespace dtrun::spec {

struct SyntaxProblem {
  Position at;
  std::string message;
  std::string hint;  // empty if the mistake is not a known one
};

// The problem to report for `error`, at its cause in `text` rather than where the parser noticed it.
SyntaxProblem Diagnose(const SyntaxError& error, std::string_view text);

}  // namespace dtrun::spec

// Whether a text of a plugin is one that rule S15 allows. Pure functions; any thread.
#pragma once

#include <string>

#include "dtrun/abi/base.h"

namespace dtrun::conformance {

bool IsUtf8(const std::string& text);

// What is wrong with it, as the end of a sentence that begins with its name: "is NULL", "is no UTF-8: '...'",
// "has control characters"; "" when nothing is. NULL is allowed where `optional`.
std::string TextProblem(const char* text, bool optional = false);
// The same, and "has no NUL behind its N bytes".
std::string TextProblem(dtrun_string text);

}  // namespace dtrun::conformance

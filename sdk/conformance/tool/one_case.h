// The process of one case: what the program that the user started starts for each.
//
// Used by the main thread.
#pragma once

#include "arguments.h"

namespace dtrun::conformance::tool {

// Instead of a case: whether the file can be loaded at all.
inline constexpr char kLoading[] = "(loading)";
// Instead of a case: whether what the user typed fits the plugin, and whether that has an instance here.
inline constexpr char kTrial[] = "(trial)";

// Readies GoogleTest, without the variables that it would obey.
void InitTests();

// Runs the case that `arguments` names and records what it found; the exit code.
int TryOneCase(const Arguments& arguments);

}  // namespace dtrun::conformance::tool

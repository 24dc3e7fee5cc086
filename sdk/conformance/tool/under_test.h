// What is tried, from the command line: the place of this process, and the cases of its kind of plugin.
//
// Used by the main thread.
#pragma once

#include <cstdint>

#include "arguments.h"
#include "sdk/conformance/backend_suite.h"

namespace dtrun::conformance::tool {

// DTRUN_KIND_* of the plugin, from its file's name. Throws UsageError.
std::int32_t KindOf(const Arguments& arguments);

// Of a process that --launch has started; throws std::runtime_error when its command has not said which it
// is.
LaunchedProcess PlaceOf(const Arguments& arguments);

// Registers the cases. `kind`: DTRUN_KIND_*.
void Register(const Arguments& arguments, std::int32_t kind, const LaunchedProcess& place);

}  // namespace dtrun::conformance::tool

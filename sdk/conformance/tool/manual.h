// What dtrun-conformance says of itself. Pure functions; any thread.
#pragma once

#include <string>

namespace dtrun::conformance::tool {

std::string HelpText();
// In roff's man macros, from the same texts.
std::string ManualPage();
// "dtrun-conformance 0.1.0, ABI 1.0"
std::string VersionText();

}  // namespace dtrun::conformance::tool

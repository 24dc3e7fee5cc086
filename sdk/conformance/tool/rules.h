// docs/abi.md, as it was when the program was built. A constant; any thread.
#pragma once

namespace dtrun::conformance::tool {

extern const char* const kRulesPage;

}  // namespace dtrun::conformance::tool

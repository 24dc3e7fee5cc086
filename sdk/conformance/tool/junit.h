// The results as JUnit XML, for the pages of a CI. A pure function; any thread.
#pragma once

#include <string>
#include <vector>

#include "case_process.h"

namespace dtrun::conformance::tool {

// `suite` is the name of the whole.
std::string JunitXml(const std::string& suite, const std::vector<CaseResult>& results, double seconds);

}  // namespace dtrun::conformance::tool

// The HTML of a report: styles and pictures inline, no scripts, nothing from a network.
//
// Pure; any thread. Everything that a program, a host or a file tells is escaped.
#pragma once

#include <string>

#include "tools/dtrun/report/records.h"

namespace dtrun::report {

std::string Page(const RunRecords& records);

}  // namespace dtrun::report

// What the user reads: a line for each case, the details of a failure, a summary. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "case_process.h"

namespace dtrun::conformance::tool {

// Prints the line of a case, and of a failure what was expected and which rules are broken.
void PrintResult(const CaseResult& result);
void PrintSummary(const std::vector<CaseResult>& results, double seconds);
// A mistake in the command line, on stderr.
void PrintProblem(const std::string& text);
// A line of its own; `text` may have pieces of the plugin's.
void PrintNote(const std::string& text);

// The ids that a failure names, as in "(E1)", and behind them those of its case, `rules`.
std::string RulesBroken(const std::vector<std::string>& failures, const std::string& rules);

// The text of rule `id` in docs/abi.md, without its marks; "" when there is none.
std::string RuleText(const std::string& id);

}  // namespace dtrun::conformance::tool

// Findings for people and for programs: what `dtrun explain` and verdict.json say of them.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/failures/finding.h"

namespace dtrun::failures {

// The foremost finding first, then what else is known in the text; ends in a newline. `where` is
// the file, or empty.
std::string ToText(const std::vector<Finding>& findings, const std::string& where);

// Of words that are no whole text of a failure; ends in a newline.
std::string ToText(const std::vector<Mention>& mentions);

Json ToJson(const Finding& finding);
Json ToJson(const std::vector<Finding>& findings);
Json ToJson(const std::vector<Mention>& mentions);

// "rank-0.err, line 12"; the name alone when the line is not known.
std::string PlaceText(const std::string& file, const Finding& finding);

}  // namespace dtrun::failures

// Formats findings for `dtrun explain` and verdict.json.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/failures/finding.h"

namespace dtrun::failures {

// The foremost finding first, then the others; ends in a newline. `where`: the file, or empty.
std::string ToText(const std::vector<Finding>& findings, const std::string& where);

// For words that match only parts of failures; ends in a newline.
std::string ToText(const std::vector<Mention>& mentions);

Json ToJson(const Finding& finding);
Json ToJson(const std::vector<Finding>& findings);
Json ToJson(const std::vector<Mention>& mentions);

// "rank-0.err, line 12"; only the name if the line is unknown.
std::string PlaceText(const std::string& file, const Finding& finding);

}  // namespace dtrun::failures

// Finds the nearest name, for "did you mean". Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// Levenshtein distance in bytes, case ignored, with a swap of neighbours counted as one
// edit (optimal string alignment).
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name` if it is a likely typo (distance at most 3 and less than half of the longer
// name); ties go to the earlier candidate. Otherwise the only candidate that `name` abbreviates.
std::optional<std::string> Nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dtrun

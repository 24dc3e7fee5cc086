// Nearest names, for "did you mean". Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// Levenshtein distance in bytes, case ignored, with a swap of neighbours counted as one
// edit (optimal string alignment).
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name` when it is near enough to be a slip (distance at most 3
// and less than half of the longer name); ties go to the earlier candidate. Else the only one that `name`
// abbreviates.
std::optional<std::string> Nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dtrun

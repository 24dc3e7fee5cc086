// Lists of numbers as the kernel and launchers write them: "0,4-7". Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// The largest number that a list may hold.
inline constexpr int kLargestListed = 1'000'000;

// "0,4-7" for {0, 4, 5, 6, 7}. `numbers` must be ascending.
std::string NumberList(const std::vector<int>& numbers);

// Ascending, without duplicates. nullopt if `text` is not such a list or holds a number above
// kLargestListed.
std::optional<std::vector<int>> ReadNumberList(std::string_view text);

}  // namespace dtrun

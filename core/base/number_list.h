// Lists of numbers as the kernel and launchers write them: "0,4-7". Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

// The largest number that such a list may hold.
inline constexpr int kLargestListed = 1'000'000;

// "0,4-7" of {0, 4, 5, 6, 7}. `numbers`: ascending.
std::string NumberList(const std::vector<int>& numbers);

// Ascending, each once. Empty when `text` is no such list, or holds more than kLargestListed.
std::optional<std::vector<int>> ReadNumberList(std::string_view text);

}  // namespace dtrun

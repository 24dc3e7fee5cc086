// Lists of numbers as the kernel and launchers write them: "0,4-7"; and of counts, "2(x3),1". Pure; any
// thread.
#pragma once

#include <cstddef>
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

// Lists of counts in which a run of equal counts is written once, as in SLURM_TASKS_PER_NODE of srun(1):
// "2(x3),1" means {2, 2, 2, 1}.
std::string CountList(const std::vector<int>& counts);
// nullopt if `text` is not such a list, has a count below 1, or has more than `most` counts.
std::optional<std::vector<int>> ReadCountList(std::string_view text, std::size_t most);

}  // namespace dtrun

// Lists of counts in which a run of equal counts is written once, as in SLURM_TASKS_PER_NODE of srun(1):
// "2(x3),1" means {2, 2, 2, 1}. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

std::string CountList(const std::vector<int>& counts);

// nullopt if `text` is not such a list, has a count below 1, or has more than `most` counts.
std::optional<std::vector<int>> ReadCountList(std::string_view text, std::size_t most);

}  // namespace dtrun

// Lists of counts, equal ones in a row written once: "2(x3),1" of {2, 2, 2, 1}, as SLURM_TASKS_PER_NODE of
// srun(1) has them. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

std::string CountList(const std::vector<int>& counts);

// Empty when `text` is no such list, has a count below 1, or has more than `most` counts.
std::optional<std::vector<int>> ReadCountList(std::string_view text, std::size_t most);

}  // namespace dtrun

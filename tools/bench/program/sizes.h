// The sweep of sizes: "8:64M". Pure function; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::bench {

// "8:64M" is 8, 8 * factor, ... up to 64 MiB; "1M" is a single size; "1K,1M" is a list of either. Ascending,
// without duplicates.
Result<std::vector<std::uint64_t>> ParseSizes(std::string_view text, std::uint64_t factor);

}  // namespace dtrun::bench

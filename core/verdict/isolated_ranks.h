// Isolated ranks never joined each other, and their programs do not notice: each rank trains alone on the
// whole data set and succeeds. Decides what that means for the job and describes it.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/pmi/kind.h"

namespace dtrun::verdict {

// job.isolated_ranks: "warn", "fail", "allow".
enum class IsolationPolicy : std::uint8_t { kWarn, kFail, kAllow };
// REQUIRES: one of these words.
IsolationPolicy IsolationPolicyNamed(std::string_view word);

struct IsolatedRanks {
  std::string what;  // "the ranks have not joined each other: each has ..."
  std::string next;  // what to do
};

// `frameworks`: loaded by the ranks; not empty. `pmi`: what the job serves to MPI libraries. `seen`: a rank
// was seen working alone; otherwise no rank was seen joining.
IsolatedRanks DescribeIsolatedRanks(const std::vector<std::string>& frameworks, pmi::Kind pmi,
                                    bool seen = true);

}  // namespace dtrun::verdict

// Ranks that never joined each other, which their programs do not notice: each of them trains alone,
// with the whole data, and all succeed. What that means for the job, and what to say of it.
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
// REQUIRES: one of the words.
IsolationPolicy IsolationPolicyNamed(std::string_view word);

struct IsolatedRanks {
  std::string what;  // "the ranks have not joined each other: each has ..."
  std::string next;  // to do
};

// `frameworks`: what the ranks have loaded; not empty. `pmi`: what the job serves to MPI libraries. `seen`:
// one was seen to work alone; else none was seen to join.
IsolatedRanks DescribeIsolatedRanks(const std::vector<std::string>& frameworks, pmi::Kind pmi,
                                    bool seen = true);

}  // namespace dtrun::verdict

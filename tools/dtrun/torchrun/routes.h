// Where the output of ranks goes by torchrun's rules: its log folders, --redirects, --tee,
// --local-ranks-filter and the prefix of tee'd lines.
//
// RoutesOf is pure. The router is used on the loop thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/output/output.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// `attempt`: the folder attempt_N of the run, absolute; empty: no files are kept, and then, as
// in torchrun, everything goes to the console as it is.
output::Routes RoutesOf(const Arguments& arguments, const std::filesystem::path& attempt, int rank,
                        int local_rank, const std::string& host);

// "attempt_0"
std::string AttemptName(int attempt);

// Makes attempt_N/LOCAL_RANK in the folder of the run, where N counts how often the rank was
// opened before, and routes the rank there. `local_ranks`: by rank.
output::Router MakeRouter(Arguments arguments, bool keeps_logs, std::map<int, int> local_ranks,
                          std::string host);

}  // namespace dtrun::torchrun

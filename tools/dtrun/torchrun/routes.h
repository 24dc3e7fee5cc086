// Where the output of ranks goes by torchrun's rules: its log folders, --redirects, --tee,
// --local-ranks-filter and the prefix of tee'd lines.
//
// RoutesOf is pure. Loop thread.
#pragma once

#include <filesystem>
#include <string>

#include "core/output/output.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// Where a rank lives.
struct Seat {
  int node = 0;
  int local_rank = 0;
  std::string host;
};

// `attempt`: the folder attempt_N of the run, absolute; empty: no files are kept, and then, as
// in torchrun, everything goes to the console as it is.
output::Routes RoutesOf(const Arguments& arguments, const std::filesystem::path& attempt, int rank,
                        const Seat& seat);

// The folder of a rank in that of its attempt: LOCAL_RANK, and of other nodes than the first
// node_N/LOCAL_RANK.
std::filesystem::path FolderOf(const Seat& seat);

// Makes the folder of a rank in attempt_N of the run, where N is its generation, and routes the rank there.
// `logs`: the folder of that generation.
Result<output::Routes> RouteRank(const Arguments& arguments, bool keeps_logs,
                                 const std::filesystem::path& logs, int rank, const Seat& seat);

}  // namespace dtrun::torchrun

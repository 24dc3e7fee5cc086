// Routes ranks' output by torchrun's rules: log folders, --redirects, --tee, --local-ranks-filter and the
// prefix of tee'd lines.
//
// RoutesOf is pure. Loop thread.
#pragma once

#include <filesystem>
#include <string>

#include "core/output/output.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// The location of a rank.
struct Seat {
  int node = 0;
  int local_rank = 0;
  std::string host;
};

// `attempt`: the absolute folder attempt_N of the run. Empty: no files; then everything goes to the console
// unchanged, as in torchrun.
output::Routes RoutesOf(const Arguments& arguments, const std::filesystem::path& attempt, int rank,
                        const Seat& seat);

// A rank's folder within its attempt: LOCAL_RANK, or node_N/LOCAL_RANK on nodes other than the first.
std::filesystem::path FolderOf(const Seat& seat);

// Creates the rank's folder in attempt_N of the run, where N is its generation, and routes the rank there.
// `logs`: the folder of that generation.
Result<output::Routes> RouteRank(const Arguments& arguments, bool keeps_logs,
                                 const std::filesystem::path& logs, int rank, const Seat& seat);

}  // namespace dtrun::torchrun

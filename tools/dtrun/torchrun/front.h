// How `dtrun torchrun` presents a job: ranks' output by torchrun's rules (log folders, --redirects, --tee,
// --local-ranks-filter, the prefix of tee'd lines), and torchrun's summary of a failed run.
//
// RoutesOf is pure. Loop thread; the summary: main thread of the agent, after the run.
#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/output/output.h"
#include "core/verdict/facts.h"
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

// Creates the rank's folder in attempt_N of the run, where N is its generation, and routes the rank there.
// `logs`: the folder of that generation.
Result<output::Routes> RouteRank(const Arguments& arguments, bool keeps_logs,
                                 const std::filesystem::path& logs, int rank, const Seat& seat);

// From dtrun's facts and the ranks' error files; formatted like
// torch/distributed/elastic/multiprocessing/errors/__init__.py (torch 2.13).
struct Failure {
  int rank = 0;
  int local_rank = 0;
  std::string host;
  int pid = 0;
  int exit_code = 0;  // -S if signal S killed it
  std::time_t time = 0;
  std::string error_file;  // empty: not written
  std::string message;     // the traceback from the file, or what is known otherwise
};

struct Failures {
  std::vector<Failure> all;  // by rank
  std::size_t root = 0;      // index of the first failure
};

// Unset if no rank failed by itself. `started`: start time of the ranks. `error_files`: the path of each
// rank's error file, which may not exist.
std::optional<Failures> FailuresOf(const verdict::Facts& facts, std::time_t started,
                                   const std::map<int, int>& local_ranks,
                                   const std::map<int, std::string>& error_files);

// "=====\ntrain.py FAILED\n-----..."; ends in a newline.
std::string Summary(const std::string& entry, const Failures& failures);

// The root failure's error file with its exit code added, as torchrun passes it to its caller; empty if there
// is none.
std::string RootErrorFile(const Failures& failures);

}  // namespace dtrun::torchrun

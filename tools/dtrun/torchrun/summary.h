// torchrun's summary of a failed run, from dtrun's facts and the ranks' error files.
//
// Formatted like torch/distributed/elastic/multiprocessing/errors/__init__.py (torch 2.13). Main thread of
// the agent, after the run.
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::torchrun {

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

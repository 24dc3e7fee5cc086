// torchrun's summary of a failed run, from what dtrun saw and the error files of the ranks.
//
// The form is that of torch/distributed/elastic/multiprocessing/errors/__init__.py (torch
// 2.13). Main thread of the agent, after the run.
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
  int exit_code = 0;  // -S when signal S killed it
  std::time_t time = 0;
  std::string error_file;  // empty: it wrote none
  std::string message;     // the traceback in it, or what is known without one
};

struct Failures {
  std::vector<Failure> all;  // by rank
  std::size_t root = 0;      // index of the one that failed first
};

// Unset when no rank failed by itself. `started` is when the ranks were; `error_files`: where each rank would
// have written its own.
std::optional<Failures> FailuresOf(const verdict::Facts& facts, std::time_t started,
                                   const std::map<int, int>& local_ranks,
                                   const std::map<int, std::string>& error_files);

// "=====\ntrain.py FAILED\n-----..."; ends in a newline.
std::string Summary(const std::string& entry, const Failures& failures);

// The root's error file with its exit code put into it, as torchrun hands it to whoever started
// it; empty when the root wrote none.
std::string RootErrorFile(const Failures& failures);

}  // namespace dtrun::torchrun

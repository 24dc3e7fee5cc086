// The command line of `dtrun bench`, checked. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/bench/program/element.h"
#include "tools/bench/program/operation.h"

namespace dtrun::bench {

constexpr double kSecondsPerSize = 2.5;

// As typed.
struct Arguments {
  std::string operation = "allreduce";
  std::string dtype = "float32";
  std::string sizes = "8:64M";
  int factor = 2;
  int ranks = 2;
  int rounds = 8;
  int warmup = 2;
  std::optional<double> seconds;  // unset: kSecondsPerSize for each size
  std::string backends = "gloo";
  std::string locals = "shm,none";
  std::string peers = "all";
  std::string buffers = "private";
  std::string json, plot;
  std::string wrap;
  std::string mpirun = "mpirun --oversubscribe";
  std::vector<std::string> sets;
  std::vector<std::string> plugin_dirs;
};

// An option of our jobs.
struct Set {
  std::string backend;     // of those with this backend only; empty: of all
  std::string assignment;  // KEY=VALUE
};

// As meant.
struct Request {
  Operation operation = Operation::kAllreduce;
  Element element{};
  std::vector<Shape> shapes;  // ascending; one empty shape for a barrier
  int ranks = 2;
  int rounds = 8;
  int warmup = 2;
  double seconds = 0;  // that all sizes take together, about
  std::vector<std::string> backends, locals, peers;
  std::vector<bool> registered;     // of the buffers of our own columns
  std::string json, plot;           // files; empty: none
  std::vector<std::string> wrap;    // in front of the command of every rank that dtrun starts
  std::vector<std::string> mpirun;  // starts the ranks of MPI; the first word is a program
  std::vector<Set> sets;
  std::vector<std::string> plugin_dirs;
};

// Tries to write the output files as well, so that nobody measures for a minute in vain.
Result<Request> Check(const Arguments& arguments);

}  // namespace dtrun::bench

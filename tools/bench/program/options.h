// The validated command line of `dtrun bench`. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/bench/program/element.h"
#include "tools/bench/program/operation.h"

namespace dtrun::bench {

constexpr double kSecondsPerSize = 2.5;

// As typed by the user.
struct Arguments {
  std::string operation = "allreduce";
  std::string dtype = "float32";
  std::string sizes = "8:64M";
  int factor = 2;
  int ranks = 2;
  int rounds = 8;
  int warmup = 2;
  std::optional<double> seconds;  // unset: kSecondsPerSize per size
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

// An option for dtrun's own jobs.
struct Set {
  std::string backend;     // only for this backend; empty: for all
  std::string assignment;  // KEY=VALUE
};

// The validated request.
struct Request {
  Operation operation = Operation::kAllreduce;
  Element element{};
  std::vector<Shape> shapes;  // ascending; one empty shape for a barrier
  int ranks = 2;
  int rounds = 8;
  int warmup = 2;
  double seconds = 0;  // approximate total for all sizes
  std::vector<std::string> backends, locals, peers;
  std::vector<bool> registered;     // for the buffers of dtrun's own columns
  std::string json, plot;           // files; empty: none
  std::vector<std::string> wrap;    // prefix of every rank command that dtrun starts
  std::vector<std::string> mpirun;  // starts MPI ranks; the first word is a program
  std::vector<Set> sets;
  std::vector<std::string> plugin_dirs;
};

// Also checks that the output files are writable, so that no measurement is lost.
Result<Request> Check(const Arguments& arguments);

}  // namespace dtrun::bench

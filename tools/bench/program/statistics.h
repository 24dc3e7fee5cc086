// Computes the values of a row from sample times. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/program/operation.h"

namespace dtrun::bench {

// Nanoseconds per call. All 0 without samples.
struct Summary {
  double min = 0, median = 0, p99 = 0;
  std::size_t samples = 0;
};

// The median of an even number of samples is the mean of the middle two. p99 is the smallest sample that is
// at least as large as 99 % of all.
Summary Summarise(std::vector<double> samples);

// The slowest rank's time of every sample. REQUIRES: all ranks have the same number of samples.
std::vector<double> SlowestOf(const std::vector<std::vector<double>>& ranks);

// GB/s (10^9 bytes) for `bytes` in `nanoseconds`; 0 if either is 0.
double Bandwidth(std::uint64_t bytes, double nanoseconds);

// The length of a batch: `samples` times `iterations` calls.
struct Batch {
  std::uint64_t samples = 1, iterations = 1;
};

// The batch that fills `slot` with calls of duration `call`, both in nanoseconds.
Batch BatchFor(double slot, double call);

}  // namespace dtrun::bench

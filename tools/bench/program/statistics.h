// From the times of samples to the figures of a row. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/program/operation.h"

namespace dtrun::bench {

// Nanoseconds of one call. All 0 without samples.
struct Summary {
  double min = 0, median = 0, p99 = 0;
  std::size_t samples = 0;
};

// The median of an even number is the mean of the middle two; p99 is the smallest sample that at
// least 99 % do not exceed.
Summary Summarise(std::vector<double> samples);

// For every sample its slowest rank. REQUIRES: all ranks have the same number of samples.
std::vector<double> SlowestOf(const std::vector<std::vector<double>>& ranks);

// GB/s (10^9 bytes) of `bytes` in `nanoseconds`; 0 when either is.
double Bandwidth(std::uint64_t bytes, double nanoseconds);

// How long a batch is: `samples` times `iterations` calls.
struct Batch {
  std::uint64_t samples = 1, iterations = 1;
};

// Fills `slot` with calls that took `call` each, both in nanoseconds.
Batch BatchFor(double slot, double call);

}  // namespace dtrun::bench

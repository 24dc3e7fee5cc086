// The measuring loop of overlap.cc and overlap_mpi.cc: how much of a computation an asynchronous allreduce
// hides. Main thread.
//
// Each round times the allreduce alone, the computation alone (calibrated to the same duration), and both
// together, each on its slowest rank. Rank 0 prints "overlap COMM COMPUTE BOTH" in seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

namespace dtrun::overlap {

struct Transport {
  int rank;
  std::function<void()> start;  // the allreduce
  std::function<void()> wait;   // waits for its end
  std::function<void()> barrier;
  std::function<double(double)> slowest;  // the largest of all ranks' values
};

// Arithmetic of one thread, in registers: uses nothing but its core.
inline void Compute(long steps) {
  double a = 1, b = 2, c = 3, d = 4;
  for (long i = 0; i < steps; ++i) {
    a = a * 0.999 + 0.1;
    b = b * 0.998 + 0.2;
    c = c * 0.997 + 0.3;
    d = d * 0.996 + 0.4;
  }
  volatile double kept = a + b + c + d;
  (void)kept;
}

inline void Measure(const Transport& transport, int rounds) {
  const auto timed = [&](const std::function<void()>& work) {
    transport.barrier();
    const auto begin = std::chrono::steady_clock::now();
    work();
    return transport.slowest(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  };
  const auto communicate = [&] {
    transport.start();
    transport.wait();
  };
  const auto best = [&](const std::function<void()>& work) {
    double least = timed(work);
    for (int i = 0; i < 4; ++i) least = std::min(least, timed(work));
    return least;
  };
  constexpr long kProbe = 20'000'000;
  const auto steps = static_cast<long>(kProbe * (best(communicate) / best([] { Compute(kProbe); })));
  for (int round = 0; round < rounds; ++round) {
    const double comm = timed(communicate);
    const double compute = timed([&] { Compute(steps); });
    const double both = timed([&] {
      transport.start();
      Compute(steps);
      transport.wait();
    });
    if (transport.rank == 0) std::printf("overlap %.6f %.6f %.6f\n", comm, compute, both);
  }
}

}  // namespace dtrun::overlap

// A training program over libdtrun and nothing else: fits a linear model by full-batch gradient
// descent, each rank with its share of the samples. Rank 0 prints the final loss, which depends on
// neither the number of ranks nor on what starts or joins them, but for the rounding of sums.
#include <cmath>
#include <cstdio>
#include <vector>

#include "dtrun/dtrun.hpp"

namespace {

constexpr int kSamples = 60, kFeatures = 6, kSteps = 40;
constexpr double kRate = 0.1;

// Some smooth, fixed data.
double Feature(int sample, int feature) { return std::sin(1.0 + sample * 0.7 + feature * 1.3); }
double Target(int sample) { return std::cos(sample * 0.4); }

// Sums of the gradient and, behind it, of the loss over this rank's samples.
std::vector<double> Sums(const std::vector<double>& weights, int rank, int ranks) {
  std::vector<double> sums(kFeatures + 1, 0.0);
  for (int sample = rank; sample < kSamples; sample += ranks) {
    double error = -Target(sample);
    for (int i = 0; i < kFeatures; ++i) error += weights[static_cast<std::size_t>(i)] * Feature(sample, i);
    for (int i = 0; i < kFeatures; ++i) sums[static_cast<std::size_t>(i)] += error * Feature(sample, i);
    sums.back() += error * error / 2;
  }
  return sums;
}

void Train() {
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  std::vector<double> weights(kFeatures, 0.0);
  double loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> sums = Sums(weights, world.rank(), world.size());
    world.allreduce(sums.data(), sums.size());
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= kRate * sums[i] / kSamples;
    loss = sums.back() / kSamples;
  }
  if (world.rank() == 0) {
    std::printf("loss %.12f on %d ranks over %s\n", loss, world.size(), world.backend().c_str());
    std::fflush(stdout);
  }
  world.barrier();
}

}  // namespace

int main() {
  try {
    Train();
    return 0;
  } catch (const dtrun::Failure& failure) {
    std::fprintf(stderr, "train failed: %s\n", failure.what());
    return 3;
  }
}

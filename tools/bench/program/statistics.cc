#include "tools/bench/program/statistics.h"

#include <algorithm>
#include <cmath>

namespace dtrun::bench {

Summary Summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  const auto rank99 = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(n)));
  return {samples.front(), (samples[(n - 1) / 2] + samples[n / 2]) / 2, samples[rank99 - 1], n};
}

std::vector<double> SlowestOf(const std::vector<std::vector<double>>& ranks) {
  if (ranks.empty()) return {};
  std::vector<double> slowest = ranks.front();
  for (const std::vector<double>& samples : ranks) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], samples[i]);
  }
  return slowest;
}

double Bandwidth(std::uint64_t bytes, double nanoseconds) {
  return nanoseconds > 0 ? static_cast<double>(bytes) / nanoseconds : 0;
}

Batch BatchFor(double slot, double call) {
  constexpr double kSamples = 16, kMostIterations = 1e6;
  const double one = std::max(call, 1.0);
  const double iterations = std::clamp(std::floor(slot / kSamples / one), 1.0, kMostIterations);
  const double samples = std::clamp(std::floor(slot / (iterations * one)), 1.0, kSamples);
  return {static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(iterations)};
}

}  // namespace dtrun::bench

// The one-cycle learning rate: up from 1/25 of the peak over the first 30 % of all steps,
// then down to almost nothing, both along half a cosine. Pure function.
#pragma once

#include <cmath>
#include <cstdint>

namespace dtrun::train {

// `step` counts from 0. REQUIRES: step < steps
inline double OneCycle(double peak, std::uint64_t step, std::uint64_t steps) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr double kRise = 0.3;
  const double first = peak / 25;
  const double last = first / 1e4;
  const double at = steps > 1 ? static_cast<double>(step) / static_cast<double>(steps - 1) : 1.0;
  const auto blend = [&](double from, double to, double t) {
    return to + (from - to) * (1 + std::cos(kPi * t)) / 2;
  };
  return at < kRise ? blend(first, peak, at / kRise) : blend(peak, last, (at - kRise) / (1 - kRise));
}

}  // namespace dtrun::train

#include "tools/dtrun-train/one_cycle.h"

#include <gtest/gtest.h>

namespace dtrun::train {
namespace {

TEST(OneCycle, StartsLowPeaksAtAThirdAndEndsNearZero) {
  EXPECT_NEAR(OneCycle(0.5, 0, 1001), 0.02, 1e-12);
  EXPECT_NEAR(OneCycle(0.5, 300, 1001), 0.5, 1e-12);
  EXPECT_NEAR(OneCycle(0.5, 1000, 1001), 2e-6, 1e-12);
}

TEST(OneCycle, RisesThenFalls) {
  for (std::uint64_t step = 1; step < 1001; ++step) {
    const bool rising = OneCycle(0.5, step, 1001) > OneCycle(0.5, step - 1, 1001);
    EXPECT_EQ(rising, step <= 300) << "step " << step;
  }
}

TEST(OneCycle, SurvivesASingleStep) { EXPECT_NEAR(OneCycle(0.5, 0, 1), 2e-6, 1e-12); }

}  // namespace
}  // namespace dtrun::train

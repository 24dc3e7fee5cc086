#include "tools/bench/program/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace dtrun::bench {
namespace {

using ::testing::ElementsAre;

TEST(Statistics, OneSampleIsAllThree) {
  const Summary summary = Summarise({7});
  EXPECT_EQ(summary.min, 7);
  EXPECT_EQ(summary.median, 7);
  EXPECT_EQ(summary.p99, 7);
  EXPECT_EQ(summary.samples, 1u);
}

TEST(Statistics, TheMedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_EQ(Summarise({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(Summarise({5, 1, 3}).median, 3);
}

TEST(Statistics, P99IsTheSmallestThatNinetyNineInAHundredDoNotExceed) {
  std::vector<double> samples(200);
  std::iota(samples.rbegin(), samples.rend(), 1);
  EXPECT_EQ(Summarise(samples).p99, 198);
  EXPECT_EQ(Summarise({1, 2, 3}).p99, 3);
}

TEST(Statistics, NoSamplesAreZeros) { EXPECT_EQ(Summarise({}).median, 0); }

TEST(Statistics, ASampleTakesAsLongAsItsSlowestRank) {
  EXPECT_THAT(SlowestOf({{1, 5, 2}, {3, 4, 2}}), ElementsAre(3, 5, 2));
  EXPECT_TRUE(SlowestOf({}).empty());
}

TEST(Statistics, BandwidthIsBytesPerNanosecond) {
  EXPECT_DOUBLE_EQ(Bandwidth(64'000'000, 8e6), 8.0);
  EXPECT_EQ(Bandwidth(8, 0), 0);
  EXPECT_EQ(Bandwidth(0, 5), 0);
}

TEST(Statistics, ABatchFillsItsSlotWithAtMostSixteenSamples) {
  const Batch small = BatchFor(16e6, 100);
  EXPECT_EQ(small.samples, 16u);
  EXPECT_EQ(small.iterations, 10'000u);
  const Batch middle = BatchFor(50e6, 10e6);
  EXPECT_EQ(middle.samples, 5u);
  EXPECT_EQ(middle.iterations, 1u);
  const Batch large = BatchFor(1e6, 50e6);
  EXPECT_EQ(large.samples, 1u);
  EXPECT_EQ(large.iterations, 1u);
  EXPECT_EQ(BatchFor(1e15, 0).iterations, 1'000'000u);
}

}  // namespace
}  // namespace dtrun::bench

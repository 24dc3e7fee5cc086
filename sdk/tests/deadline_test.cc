#include "dtrun/plugin/deadline.hpp"

#include <gtest/gtest.h>

namespace dtrun::sdk {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Deadline, TellsWhatIsLeft) {
  EXPECT_EQ(Deadline().Left(), kNoLimit);
  EXPECT_EQ(Deadline(kNoLimit).Left(), kNoLimit);
  EXPECT_EQ(Deadline(Nanoseconds(0)).Left().count(), 0);
  EXPECT_TRUE(Deadline(Nanoseconds(0)).passed());
  EXPECT_FALSE(Deadline(hours(1)).passed());
  EXPECT_EQ(Deadline(hours(24 * 365 * 200)).Left(), kNoLimit);
}

TEST(Deadline, KnowsWhatItWasMadeOf) {
  EXPECT_EQ(Deadline(milliseconds(20)).timeout(), milliseconds(20));
  EXPECT_EQ(Deadline().timeout(), kNoLimit);
  EXPECT_EQ(Deadline(Nanoseconds(-5)).timeout(), kNoLimit);
}

TEST(LazyDeadline, OfTheLongestTimeNeverComes) {
  LazyDeadline longest(INT64_MAX), none(-1), short_one(1'000'000'000);
  EXPECT_EQ(longest.Left(Nanoseconds(INT64_MAX)), Nanoseconds(INT64_MAX));
  EXPECT_EQ(longest.Left(hours(1)), hours(1));
  EXPECT_EQ(none.Left(hours(1)), hours(1));
  EXPECT_LE(short_one.Left(hours(1)), std::chrono::seconds(1));
  EXPECT_FALSE(longest.Passed());
}

TEST(DurationText, SaysSecondsAndMilliseconds) {
  EXPECT_EQ(DurationText(milliseconds(200)), "200 ms");
  EXPECT_EQ(DurationText(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(DurationText(std::chrono::seconds(60)), "60 s");
}

}  // namespace
}  // namespace dtrun::sdk

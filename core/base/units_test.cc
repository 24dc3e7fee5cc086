#include <gtest/gtest.h>

#include "core/base/number.h"

namespace dtrun {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(*ParseDuration("500ms"), 500ms);
  EXPECT_EQ(*ParseDuration("60s"), 60s);
  EXPECT_EQ(*ParseDuration("1.5m"), 90s);
  EXPECT_EQ(*ParseDuration("2h"), 2h);
  EXPECT_EQ(*ParseDuration("10 us"), 10us);
  EXPECT_EQ(*ParseDuration("1h30m"), 90min);
  EXPECT_EQ(*ParseDuration("1h 30m 5s"), 5405s);
}

TEST(DurationMeant, KnowsDaysAndLeavesSeveralUnitsAlone) {
  EXPECT_EQ(DurationMeant("2d"), "48h");
  EXPECT_EQ(DurationMeant("1h30"), "");
}

TEST(ParseDuration, RefusesWhatIsNotADuration) {
  for (const char* text : {"", "60", "s", "-1s", "1 parsec", "nan s", "1e30h", "1s "}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_NE(ParseDuration("60").error().text.find("'60' is not a duration"), std::string::npos);
}

TEST(ParseBytes, ReadsBinaryUnits) {
  EXPECT_EQ(*ParseBytes("64"), 64u);
  EXPECT_EQ(*ParseBytes("64K"), 65536u);
  EXPECT_EQ(*ParseBytes("8MiB"), 8u << 20);
  EXPECT_EQ(*ParseBytes("1GB"), 1u << 30);
}

TEST(ParseBytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", "K", "-1", "1X", "1e30", "8MM"}) EXPECT_FALSE(ParseBytes(text).ok()) << text;
}

TEST(FormatUnits, GivesTheShortestExactSpelling) {
  EXPECT_EQ(FormatDuration(1500ms), "1500ms");
  EXPECT_EQ(FormatDuration(60s), "1m");
  EXPECT_EQ(FormatDuration(0s), "0s");
  EXPECT_EQ(FormatBytes(65536), "64KiB");
  EXPECT_EQ(FormatBytes(1000), "1000");
}

}  // namespace
}  // namespace dtrun

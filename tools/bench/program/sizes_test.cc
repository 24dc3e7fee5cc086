#include "tools/bench/program/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sizes, ARangeDoublesUpToItsLastSize) {
  EXPECT_THAT(*ParseSizes("8:64", 2), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(*ParseSizes("1K:1M", 32), ElementsAre(1024, 32768, 1048576));
}

TEST(Sizes, ARangeStopsBelowALastSizeThatItDoesNotHit) {
  EXPECT_THAT(*ParseSizes("3:20", 2), ElementsAre(3, 6, 12));
}

TEST(Sizes, AListIsSortedAndHasNothingTwice) {
  EXPECT_THAT(*ParseSizes("1M,8:32,16", 2), ElementsAre(8, 16, 32, 1048576));
}

TEST(Sizes, ASingleSizeIsItself) { EXPECT_THAT(*ParseSizes("64M", 2), ElementsAre(64 << 20)); }

TEST(Sizes, WhatIsWrongIsNamed) {
  EXPECT_THAT(ParseSizes("64M:8", 2).error().text,
              AllOf(HasSubstr("'64M:8'"), HasSubstr("from large to small")));
  EXPECT_THAT(ParseSizes("0:8", 2).error().text, HasSubstr("'0'"));
  EXPECT_THAT(ParseSizes("8:9P", 2).error().text, HasSubstr("'8:9P'"));
  EXPECT_THAT(ParseSizes("1000T", 2).error().text, HasSubstr("between 1 byte and 1T"));
  EXPECT_FALSE(ParseSizes("8:16:32", 2).ok());
  EXPECT_FALSE(ParseSizes("", 2).ok());
  EXPECT_FALSE(ParseSizes("8,", 2).ok());
}

TEST(Sizes, AFactorBelowTwoIsRefused) {
  EXPECT_THAT(ParseSizes("8:64", 1).error().text, HasSubstr("factor 1"));
  EXPECT_FALSE(ParseSizes("8:64", 0).ok());
}

}  // namespace
}  // namespace dtrun::bench

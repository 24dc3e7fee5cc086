#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/number.h"

namespace dtrun {
namespace {

using ::testing::ElementsAre;

TEST(CountList, WritesEqualOnesInARowOnce) {
  EXPECT_EQ(CountList({2, 2, 2, 1, 2}), "2(x3),1,2");
  EXPECT_EQ(CountList({8}), "8");
  EXPECT_EQ(CountList(std::vector<int>(65536, 8)), "8(x65536)");
}

TEST(CountList, IsReadAsItWasWritten) {
  EXPECT_THAT(*ReadCountList("2(x3),1,2", 5), ElementsAre(2, 2, 2, 1, 2));
  EXPECT_THAT(*ReadCountList("2,2", 2), ElementsAre(2, 2));
}

TEST(CountList, OfOtherFormIsNone) {
  for (const char* text : {"", "2,", ",2", "2 2", "0", "-1", "2(x)", "2(x0)", "2(x2", "(x2)", "2x3", "2(x3)1",
                           "2(x99999999999999999999)", "99999999999"}) {
    EXPECT_FALSE(ReadCountList(text, 8)) << text;
  }
  EXPECT_FALSE(ReadCountList("2(x3),1", 3)) << "more than were expected";
}

}  // namespace
}  // namespace dtrun

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/number.h"

namespace dtrun {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(NumberList, WritesRunsAsRanges) {
  EXPECT_EQ(NumberList({}), "");
  EXPECT_EQ(NumberList({3}), "3");
  EXPECT_EQ(NumberList({0, 1}), "0-1");
  EXPECT_EQ(NumberList({0, 4, 5, 6, 9}), "0,4-6,9");
}

TEST(NumberList, ReadsWhatItWrites) {
  EXPECT_THAT(ReadNumberList("0"), Optional(ElementsAre(0)));
  EXPECT_THAT(ReadNumberList("0,4-6,9"), Optional(ElementsAre(0, 4, 5, 6, 9)));
  EXPECT_THAT(ReadNumberList(" 7 , 1-2,2-3"), Optional(ElementsAre(1, 2, 3, 7)));
}

TEST(NumberList, RefusesWhatIsNoList) {
  for (const char* text :
       {"", "a", "1-", "-1", "1,,2", "2-1", "1-2-3", "1 2", "0x1", "0-99999999999", "0-1000001"})
    EXPECT_EQ(ReadNumberList(text), std::nullopt) << text;
}

}  // namespace
}  // namespace dtrun

#include "core/base/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace dtrun {
namespace {

TEST(NumberOf, ReadsAWholeText) {
  EXPECT_EQ(NumberOf<int>("-17"), -17);
  EXPECT_EQ(NumberOf<unsigned>("0750", 8), 0750u);
  EXPECT_EQ(NumberOf<double>("1.5"), 1.5);
  for (const char* text : {"", "x", "1x", " 1", "1 ", "+1", "0x1", "-", "99999999999"})
    EXPECT_FALSE(NumberOf<int>(text)) << text;
  EXPECT_FALSE(NumberOf<std::uint16_t>("65536"));
  EXPECT_FALSE(NumberOf<unsigned>("-1"));
}

TEST(TakeNumber, LeavesWhatIsBehind) {
  std::string_view text = "40000-40100";
  EXPECT_EQ(TakeNumber<int>(&text), 40000);
  EXPECT_EQ(text, "-40100");
  text = "ms";
  EXPECT_FALSE(TakeNumber<int>(&text));
  EXPECT_EQ(text, "ms");
}

}  // namespace
}  // namespace dtrun

#include "port_range.h"

#include <gtest/gtest.h>

namespace dtrun::gloo_plugin {
namespace {

TEST(ReadPortRange, TakesFirstAndLast) {
  const auto range = ReadPortRange("40000-40100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 40000);
  EXPECT_EQ(range->last, 40100);
}

TEST(ReadPortRange, RefusesEverythingElse) {
  for (const char* text : {"", "40000", "40100-40000", "0-5", "1-65536", "1-2x", "a-b"})
    EXPECT_FALSE(ReadPortRange(text)) << text;
  EXPECT_FALSE(ReadPortRange(nullptr));
}

}  // namespace
}  // namespace dtrun::gloo_plugin

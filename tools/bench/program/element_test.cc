#include "tools/bench/program/element.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Element, HoldsSmallWholeNumbersExactly) {
  std::istringstream names(ElementNames());
  int seen = 0;
  for (std::string name; names >> name; ++seen) {
    if (name.back() == ',') name.pop_back();
    const Element element = *ParseElement(name);
    for (int value = 0; value <= 127; ++value) {
      char bytes[8] = {};
      Encode(element, value, bytes);
      EXPECT_EQ(Decode(element, bytes), value) << name;
    }
  }
  EXPECT_EQ(seen, 12);
}

TEST(Element, AnUnknownTypeHasItsNearest) {
  EXPECT_THAT(ParseElement("flaot32").error().text, AllOf(HasSubstr("'flaot32'"), HasSubstr("'float32'")));
}

// Bit patterns of IEEE 754 binary16 and of the upper half of a float32.
TEST(Element, SixteenBitFloatsHaveTheirPublishedBits) {
  std::uint16_t bits = 0;
  Encode(*ParseElement("float16"), 2, &bits);
  EXPECT_EQ(bits, 0x4000);
  Encode(*ParseElement("float16"), 3, &bits);
  EXPECT_EQ(bits, 0x4200);
  Encode(*ParseElement("bfloat16"), 1, &bits);
  EXPECT_EQ(bits, 0x3f80);
  bits = 0x3555;
  EXPECT_NEAR(Decode(*ParseElement("float16"), &bits), 1.0 / 3, 1e-4);
}

}  // namespace
}  // namespace dtrun::bench

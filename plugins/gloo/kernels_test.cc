#include "kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "convert.h"
#include "dtrun/abi/types.h"

namespace dtrun::gloo_plugin {
namespace {

// The value of a half by its definition.
float HalfByDefinition(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? std::nanf("") : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

TEST(Half, WidensEveryValueExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float expected = HalfByDefinition(half);
    const float got = HalfToFloat(half);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(got)
                                     : got == expected && std::signbit(got) == std::signbit(expected))
        << bits;
  }
}

TEST(Half, NarrowsBackToItself) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::uint16_t back = FloatToHalf(HalfToFloat(half));
    ASSERT_TRUE(std::isnan(HalfToFloat(half)) ? std::isnan(HalfToFloat(back)) : back == half) << bits;
  }
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  // Between every two neighbours: the middle goes to the even one, its neighbours to the near one.
  for (std::uint16_t low = 0; low < 0x7bff; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle = (HalfToFloat(low) + HalfToFloat(high)) / 2;
    ASSERT_EQ(FloatToHalf(middle), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), high) << low;
  }
}

TEST(Half, OverflowsToInfinityHalfwayBeyondTheLargest) {
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
}

TEST(Bfloat16, RoundsToNearestAndTiesToEvenAndKeepsNan) {
  EXPECT_EQ(FloatToBfloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBfloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(FloatToBfloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(FloatToBfloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(ReduceKernel, CombinesMoreThanOneBlockIntoASource) {
  constexpr std::size_t kCount = 5003;
  std::vector<double> a(kCount);
  std::iota(a.begin(), a.end(), 0.0);
  const std::vector<double> b(kCount, 2);
  const std::vector<double> c(kCount, 3);
  const void* sources[] = {b.data(), a.data(), c.data()};
  KernelFor(DTRUN_FLOAT64, DTRUN_AVG)(a.data(), sources, 3, kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(a[i], (static_cast<double>(i) + 5) / 3);
}

TEST(ReduceKernel, CombinesInTheOrderGiven) {
  const float big = 1e8f;
  const float one = 1;
  const float minus = -1e8f;
  float out = 0;
  const void* absorbed[] = {&big, &one, &minus};
  KernelFor(DTRUN_FLOAT32, DTRUN_SUM)(&out, absorbed, 3, 1);
  EXPECT_EQ(out, 0);
  const void* kept[] = {&big, &minus, &one};
  KernelFor(DTRUN_FLOAT32, DTRUN_SUM)(&out, kept, 3, 1);
  EXPECT_EQ(out, 1);
}

TEST(ReduceKernel, WrapsSignedIntegers) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const std::int32_t two = 2;
  std::int32_t out = 0;
  const void* sources[] = {&most, &two};
  KernelFor(DTRUN_INT32, DTRUN_SUM)(&out, sources, 2, 1);
  EXPECT_EQ(out, std::numeric_limits<std::int32_t>::min() + 1);
  KernelFor(DTRUN_INT32, DTRUN_PROD)(&out, sources, 2, 1);
  EXPECT_EQ(out, -2);
}

TEST(ReduceKernel, ExistsForEveryPairThatMakesSense) {
  for (int dtype = 1; dtype < DTRUN_DTYPE_COUNT; ++dtype) {
    for (int reduce = 1; reduce < DTRUN_REDUCE_COUNT; ++reduce) {
      EXPECT_EQ(KernelFor(dtype, reduce) != nullptr, reduce != DTRUN_AVG || IsFloating(dtype))
          << dtype << " " << reduce;
    }
    EXPECT_NE(ElementBytes(dtype), 0u);
  }
  EXPECT_EQ(KernelFor(DTRUN_DTYPE_COUNT, DTRUN_SUM), nullptr);
  EXPECT_EQ(KernelFor(DTRUN_INT32, DTRUN_REDUCE_COUNT), nullptr);
  EXPECT_EQ(ElementBytes(0), 0u);
}

}  // namespace
}  // namespace dtrun::gloo_plugin

// float16 and bfloat16: every value, every rounding, NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "reference.h"

namespace dtrun::kernels {
namespace {

using reference::Variants;

// All halves through the widening and narrowing of each variant.
TEST(SixteenBits, WidenExactlyAndNarrowBackToThemselves) {
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  for (const Variant* variant : Variants()) {
    for (const int which : {0, 1}) {
      const int dtype = which == 0 ? DTRUN_FLOAT16 : DTRUN_BFLOAT16;
      std::vector<float> wide(all.size());
      variant->widen[which](wide.data(), all.data(), all.size());
      std::vector<std::uint16_t> back(all.size());
      variant->narrow[which](back.data(), wide.data(), wide.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double expected = reference::Load(dtype, reinterpret_cast<const unsigned char*>(&all[i]));
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(wide[i])) << variant->name << " " << i;
          ASSERT_TRUE(std::isnan(reference::Load(dtype, reinterpret_cast<unsigned char*>(&back[i]))));
          continue;
        }
        ASSERT_TRUE(wide[i] == expected && std::signbit(wide[i]) == std::signbit(expected))
            << variant->name << " " << i;
        ASSERT_EQ(back[i], all[i]) << variant->name;
      }
    }
  }
}

// Between every two neighbours: the middle goes to the even one, its neighbours to the near one.
TEST(SixteenBits, RoundToNearestAndTiesToEven) {
  for (const Variant* variant : Variants()) {
    for (const int which : {0, 1}) {
      const int infinity = which == 0 ? 0x7c00 : 0x7f80;
      std::vector<std::uint16_t> low(static_cast<std::size_t>(infinity));
      std::iota(low.begin(), low.end(), std::uint16_t{0});
      std::vector<std::uint16_t> high(low);
      for (std::uint16_t& value : high) ++value;
      std::vector<float> a(low.size()), b(low.size()), middle(low.size()), below(low.size()),
          above(low.size());
      variant->widen[which](a.data(), low.data(), low.size());
      variant->widen[which](b.data(), high.data(), high.size());
      for (std::size_t i = 0; i < low.size(); ++i) {
        // Where infinity is the upper neighbour, the power of two in its place.
        const double upper = std::isinf(b[i]) ? (which == 0 ? 65536.0 : std::ldexp(1.0, 128)) : double{b[i]};
        middle[i] = static_cast<float>((a[i] + upper) / 2);
        below[i] = std::nextafter(middle[i], -1.0f);
        above[i] = std::nextafter(middle[i], std::numeric_limits<float>::infinity());
      }
      std::vector<std::uint16_t> at(low.size()), near_low(low.size()), near_high(low.size());
      variant->narrow[which](at.data(), middle.data(), low.size());
      variant->narrow[which](near_low.data(), below.data(), low.size());
      variant->narrow[which](near_high.data(), above.data(), low.size());
      for (std::size_t i = 0; i < low.size(); ++i) {
        ASSERT_EQ(at[i], low[i] % 2 == 0 ? low[i] : high[i]) << variant->name << " " << which << " " << i;
        ASSERT_EQ(near_low[i], low[i]) << variant->name << " " << which << " " << i;
        ASSERT_EQ(near_high[i], high[i]) << variant->name << " " << which << " " << i;
      }
    }
  }
}

// A sum of ones beyond 256 would stick there if bfloat16 were rounded after each step.
TEST(SixteenBits, RoundSumsOnce) {
  constexpr int kSources = 600;
  const std::uint16_t one = 0x3f80;
  const std::vector<const void*> sources(kSources, &one);
  for (const Variant* variant : Variants()) {
    std::uint16_t out = 0;
    variant->combine[DTRUN_BFLOAT16][DTRUN_SUM].reduce[0](&out, sources.data(), kSources, 1);
    EXPECT_EQ(out, 0x4416) << variant->name;  // 600
    variant->combine[DTRUN_BFLOAT16][DTRUN_AVG].reduce[0](&out, sources.data(), kSources, 1);
    EXPECT_EQ(out, one) << variant->name;
  }
}

// Also where the factor's own bits, cut to 16, would be those of another number.
TEST(SixteenBits, ScaleByNanToNan) {
  const double factor = std::bit_cast<double>(~std::uint64_t{0});
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  for (const Variant* variant : Variants()) {
    for (const int dtype : {DTRUN_FLOAT16, DTRUN_BFLOAT16}) {
      std::vector<std::uint16_t> out(all.size());
      variant->scale[dtype](out.data(), all.data(), all.size(), factor);
      for (std::uint16_t& word : out) {
        ASSERT_TRUE(std::isnan(reference::Load(dtype, reinterpret_cast<unsigned char*>(&word))))
            << variant->name;
      }
    }
  }
}

// Every bit pattern beside every kind of number.
TEST(SixteenBits, KeepNanAndInfinity) {
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  for (const std::uint16_t other : {0x0000, 0x8000, 0x0001, 0x3f80, 0x7f80, 0xff80, 0x7fff, 0xffff, 0x7f81}) {
    const std::vector<std::uint16_t> second(all.size(), other);
    const auto bytes = [](const std::vector<std::uint16_t>& words) {
      const auto* const first = reinterpret_cast<const unsigned char*>(words.data());
      return std::vector<unsigned char>(first, first + 2 * words.size());
    };
    for (const bool swapped : {false, true}) {
      const auto& first_source = swapped ? second : all;
      const auto& second_source = swapped ? all : second;
      const void* sources[] = {first_source.data(), second_source.data()};
      for (const Variant* variant : Variants()) {
        for (const int reduce : {DTRUN_SUM, DTRUN_AVG, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX}) {
          std::vector<std::uint16_t> out(all.size());
          variant->combine[DTRUN_BFLOAT16][reduce].reduce[0](out.data(), sources, 2, out.size());
          ASSERT_EQ(reference::Difference(DTRUN_BFLOAT16, reduce, {bytes(first_source), bytes(second_source)},
                                          reinterpret_cast<unsigned char*>(out.data()), out.size()),
                    "")
              << variant->name << " " << reduce << " " << other;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtrun::kernels

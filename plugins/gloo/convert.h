// 16-bit floating point to float32 and back, without branches so that loops vectorise.
// Pure functions; any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrun::gloo_plugin {

inline float Bfloat16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t FloatToBfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

inline float HalfToFloat(std::uint16_t half) {
  constexpr std::uint32_t kExponent = 0x7c00u << 13;
  const std::uint32_t shifted = (half & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & kExponent;
  const std::uint32_t normal = shifted + ((127u - 15u) << 23);
  const std::uint32_t special = normal + ((128u - 16u) << 23);  // infinity, NaN
  // A denormal becomes a normal number plus 2^-14, which the subtraction takes away.
  const float denormal = std::bit_cast<float>(normal + (1u << 23)) - std::bit_cast<float>(113u << 23);
  const std::uint32_t magnitude = exponent == kExponent ? special
                                  : exponent == 0       ? std::bit_cast<std::uint32_t>(denormal)
                                                        : normal;
  return std::bit_cast<float>(magnitude | (static_cast<std::uint32_t>(half & 0x8000u) << 16));
}

inline std::uint16_t FloatToHalf(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  constexpr std::uint32_t kInfinity = 255u << 23;
  constexpr std::uint32_t kOverflow = (127u + 16u) << 23;  // rounds to infinity
  constexpr std::uint32_t kNormal = 113u << 23;            // least normal half
  constexpr std::uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
  // Adding the magic number lets the adder round the denormal's mantissa. Magnitudes for
  // which that makes no sense are clamped away first.
  const std::uint32_t clamped = magnitude < kNormal ? magnitude : kNormal;
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(clamped) + std::bit_cast<float>(kMagic)) - kMagic;
  const std::uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t special = magnitude > kInfinity ? 0x7e00u : 0x7c00u;
  const std::uint32_t result = magnitude >= kOverflow ? special : magnitude < kNormal ? denormal : normal;
  return static_cast<std::uint16_t>(result | sign);
}

}  // namespace dtrun::gloo_plugin

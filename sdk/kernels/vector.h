// Vectors of kVectorBytes bytes, and how elements lie in them while they are combined.
//
// Included by each variant after it has defined kVectorBytes. Everything is in an anonymous namespace, and
// nothing of the standard library is called: an inline function with external linkage that was compiled for a
// wide instruction set could be the copy that the linker keeps for everybody. Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrun::kernels {
namespace {

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

using Words = Vector<std::uint32_t>;
using Floats = Vector<float>;
// As many 16-bit elements as there are Floats.
typedef std::uint16_t Shorts __attribute__((vector_size(kVectorBytes / 2)));

template <class V>
[[gnu::always_inline]] inline V LoadVector(const void* from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class V>
[[gnu::always_inline]] inline void StoreVector(void* to, V vector) {
  __builtin_memcpy(to, &vector, sizeof vector);
}
[[gnu::always_inline]] inline Words Bits(Floats value) { return __builtin_bit_cast(Words, value); }
[[gnu::always_inline]] inline Floats Value(Words bits) { return __builtin_bit_cast(Floats, bits); }

// An element type's policy has
//   Element   what lies in memory
//   Lane      what is combined
//   Wide      a vector's worth of elements as lanes
//   Load      from kVectorBytes bytes
//   Pack      to kVectorBytes bytes
// and a 16-bit one Widen and Narrow, which keep the elements' order.
template <class T>
struct Native {
  using Element = T;
  using Lane = T;
  using Wide = Vector<T>;
  [[gnu::always_inline]] static Wide Load(Words raw) { return __builtin_bit_cast(Wide, raw); }
  [[gnu::always_inline]] static Words Pack(Wide wide) { return __builtin_bit_cast(Words, wide); }
};

// Elements as 0 and 1. T is unsigned.
template <class T>
struct Truth {
  using Element = T;
  using Lane = T;
  using Wide = Vector<T>;
  [[gnu::always_inline]] static Wide Load(Words raw) {
    const Wide value = __builtin_bit_cast(Wide, raw);
    const Wide zero = value ^ value;
    return __builtin_bit_cast(Wide, value != zero) & (zero + T{1});
  }
  [[gnu::always_inline]] static Words Pack(Wide wide) { return __builtin_bit_cast(Words, wide); }
};

// A vector of 16-bit elements as two of float32.
struct FloatPair {
  Floats low;
  Floats high;
};

[[gnu::always_inline]] inline Words RoundToBfloat16(Floats value) {  // in the upper halves; lower: anything
  const Words bits = Bits(value);
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return value != value ? bits | 0x400000u : rounded;
}

// Each word holds two neighbours. One is shifted and one is masked into place, which costs less than to
// spread them out. Rounding has Pack, to which the processor may know a short cut.
template <class Rounding>
struct Bfloat16Of {
  using Element = std::uint16_t;
  using Lane = float;
  using Wide = FloatPair;
  [[gnu::always_inline]] static Wide Load(Words raw) { return {Value(raw << 16), Value(raw & 0xffff0000u)}; }
  [[gnu::always_inline]] static Words Pack(Wide wide) { return Rounding::Pack(wide); }
  [[gnu::always_inline]] static Floats Widen(Shorts narrow) {
    return Value(__builtin_convertvector(narrow, Words) << 16);
  }
  [[gnu::always_inline]] static Shorts Narrow(Floats wide) {
    return __builtin_convertvector(RoundToBfloat16(wide) >> 16, Shorts);
  }
};

struct PlainRounding {
  [[gnu::always_inline]] static Words Pack(FloatPair wide) {
    return (RoundToBfloat16(wide.low) >> 16) | (RoundToBfloat16(wide.high) & 0xffff0000u);
  }
};

// Without branches, after Fabian Giesen's half_to_float_fast and float_to_half_fast3_rtne (public domain).
[[gnu::always_inline]] inline Floats HalfToFloat(Words half) {  // in the lower halves; upper: zero
  const Words shifted = (half & 0x7fffu) << 13;
  const Words exponent = shifted & (0x7c00u << 13);
  const Words normal = shifted + ((127u - 15u) << 23);
  const Words special = normal + ((128u - 16u) << 23);  // infinity, NaN
  // A subnormal becomes a normal number plus 2^-14, which the subtraction takes away.
  const Words least = (shifted ^ shifted) + (113u << 23);
  const Words subnormal = Bits(Value(normal + (1u << 23)) - Value(least));
  const Words finite = exponent == 0u ? subnormal : normal;
  const Words magnitude = exponent == (0x7c00u << 13) ? special : finite;
  return Value(magnitude | ((half & 0x8000u) << 16));
}

[[gnu::always_inline]] inline Words FloatToHalf(Floats value) {  // in the lower halves; upper: zero
  const Words bits = Bits(value);
  const Words zero = bits ^ bits;
  const Words magnitude = bits & 0x7fffffffu;
  constexpr std::uint32_t kInfinity = 255u << 23;
  constexpr std::uint32_t kOverflow = (127u + 16u) << 23;  // rounds to infinity
  constexpr std::uint32_t kNormal = 113u << 23;            // least normal half
  constexpr std::uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
  // Adding the magic number lets the adder round the subnormal's mantissa. Magnitudes for which that makes no
  // sense are clamped away first.
  const Words clamped = magnitude < kNormal ? magnitude : zero + kNormal;
  const Words subnormal = Bits(Value(clamped) + Value(zero + kMagic)) - kMagic;
  const Words normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const Words special = magnitude > kInfinity ? zero + 0x7e00u : zero + 0x7c00u;
  const Words finite = magnitude < kNormal ? subnormal : normal;
  return (magnitude >= kOverflow ? special : finite) | ((bits >> 16) & 0x8000u);
}

// For processors that do not convert: F16C variants have a Half of their own.
struct SoftwareHalf {
  using Element = std::uint16_t;
  using Lane = float;
  using Wide = FloatPair;
  [[gnu::always_inline]] static Wide Load(Words raw) {
    return {HalfToFloat(raw & 0xffffu), HalfToFloat(raw >> 16)};
  }
  [[gnu::always_inline]] static Words Pack(Wide wide) {
    return FloatToHalf(wide.low) | (FloatToHalf(wide.high) << 16);
  }
  [[gnu::always_inline]] static Floats Widen(Shorts narrow) {
    return HalfToFloat(__builtin_convertvector(narrow, Words));
  }
  [[gnu::always_inline]] static Shorts Narrow(Floats wide) {
    return __builtin_convertvector(FloatToHalf(wide), Shorts);
  }
};

// Fewer bytes than a vector has; the rest reads as zero.
[[gnu::always_inline]] inline Words LoadPartBytes(const void* from, std::size_t bytes) {
  Words raw = {};
  __builtin_memcpy(&raw, from, bytes);
  return raw;
}
[[gnu::always_inline]] inline void StorePartBytes(void* to, Words raw, std::size_t bytes) {
  __builtin_memcpy(to, &raw, bytes);
}

}  // namespace
}  // namespace dtrun::kernels

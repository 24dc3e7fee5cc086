// What the kernels should give, computed one element at a time in the plainest way. For tests.
//
// Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "variant.h"

namespace dtrun::kernels::reference {

// All that this processor runs.
inline std::vector<const Variant*> Variants() {
  int count = 0;
  const Variant* const* usable = UsableVariants(&count);
  return {usable, usable + count};
}

// A binary format of 16 bits by its definition.
inline double Decode(std::uint16_t word, int mantissa_bits, int bias) {
  const int exponent = (word & 0x7fff) >> mantissa_bits;
  const int mantissa = word & ((1 << mantissa_bits) - 1);
  const int top = 0x7fff >> mantissa_bits;
  double magnitude = 0;
  if (exponent == top) {
    magnitude = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    magnitude = std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  }
  return (word & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest number of the format, ties to even; `value` is a float32, so double holds every step exactly.
inline std::uint16_t Encode(double value, int mantissa_bits, int bias) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  const int infinity = (0x7fff >> mantissa_bits) << mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | (infinity + 1));
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int unit = std::max(exponent - 1, 1 - bias) - mantissa_bits;  // of the last bit
  const double steps = std::nearbyint(std::ldexp(magnitude, -unit));
  const double limit = std::ldexp(2.0, bias);
  if (std::isinf(magnitude) || std::ldexp(steps, unit) >= limit)
    return static_cast<std::uint16_t>(sign | infinity);
  // Bits of a positive number grow with it; a carry out of the mantissa is the next exponent.
  const int code = static_cast<int>(steps) + ((unit + mantissa_bits + bias - 1) << mantissa_bits);
  return static_cast<std::uint16_t>(sign | code);
}

inline double Load(std::int32_t dtype, const unsigned char* from) {
  std::uint16_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return dtype == DTRUN_FLOAT16 ? Decode(word, 10, 15) : Decode(word, 7, 127);
}

template <class T>
T Take(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
bool Same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}
template <class T>
bool Same(std::complex<T> a, std::complex<T> b) {
  return Same(a.real(), b.real()) && Same(a.imag(), b.imag());
}

template <class T>
T CombineTwo(std::int32_t reduce, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (reduce) {
      case DTRUN_PROD: return a * b;
      case DTRUN_MIN: return std::isnan(a) ? a : (a < b ? a : b);
      case DTRUN_MAX: return std::isnan(a) ? a : (a > b ? a : b);
      default: return a + b;
    }
  } else {
    using Big = std::uint64_t;  // unsigned arithmetic wraps, and cutting to T's width wraps once more
    switch (reduce) {
      case DTRUN_SUM: return static_cast<T>(static_cast<Big>(a) + static_cast<Big>(b));
      case DTRUN_PROD: return static_cast<T>(static_cast<Big>(a) * static_cast<Big>(b));
      case DTRUN_MIN: return std::min(a, b);
      case DTRUN_MAX: return std::max(a, b);
      case DTRUN_BAND: return static_cast<T>(a & b);
      case DTRUN_BOR: return static_cast<T>(a | b);
      case DTRUN_BXOR: return static_cast<T>(a ^ b);
      case DTRUN_LAND: return static_cast<T>(a != 0 && b != 0);
      default: return static_cast<T>(a != 0 || b != 0);
    }
  }
}
template <class T>
std::complex<T> CombineTwo(std::int32_t reduce, std::complex<T> a, std::complex<T> b) {
  if (reduce != DTRUN_PROD) return {a.real() + b.real(), a.imag() + b.imag()};
  // Each product and the difference are rounded; volatile keeps the compiler from fusing them.
  const volatile T rr = a.real() * b.real(), ii = a.imag() * b.imag();
  const volatile T ri = a.real() * b.imag(), ir = a.imag() * b.real();
  return {rr - ii, ri + ir};
}

using Inputs = std::vector<std::vector<unsigned char>>;

template <class T>
std::string DifferenceOf(std::int32_t reduce, const Inputs& inputs, const unsigned char* out,
                         std::size_t count) {
  const bool logical = reduce == DTRUN_LAND || reduce == DTRUN_LOR;
  for (std::size_t i = 0; i < count; ++i) {
    T want = Take<T>(inputs[0].data() + i * sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      if (logical) want = static_cast<T>(want != 0);
    }
    for (std::size_t s = 1; s < inputs.size(); ++s) {
      want = CombineTwo(reduce, want, Take<T>(inputs[s].data() + i * sizeof(T)));
    }
    if constexpr (!std::is_integral_v<T>) {
      if (reduce == DTRUN_AVG) {
        if constexpr (std::is_floating_point_v<T>) {
          want /= static_cast<T>(inputs.size());
        } else {
          using Part = typename T::value_type;
          const auto ranks = static_cast<Part>(inputs.size());
          want = T(want.real() / ranks, want.imag() / ranks);
        }
      }
    }
    if (!Same(want, Take<T>(out + i * sizeof(T)))) return "element " + std::to_string(i) + " is wrong";
  }
  return {};
}

inline std::string SixteenBitDifference(std::int32_t dtype, std::int32_t reduce, const Inputs& inputs,
                                        const unsigned char* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto want = static_cast<float>(Load(dtype, inputs[0].data() + 2 * i));
    for (std::size_t s = 1; s < inputs.size(); ++s) {
      want = CombineTwo(reduce, want, static_cast<float>(Load(dtype, inputs[s].data() + 2 * i)));
    }
    if (reduce == DTRUN_AVG) want /= static_cast<float>(inputs.size());
    const std::uint16_t word = dtype == DTRUN_FLOAT16 ? Encode(want, 10, 15) : Encode(want, 7, 127);
    const double rounded = Load(dtype, reinterpret_cast<const unsigned char*>(&word));
    const double got = Load(dtype, out + 2 * i);
    if (!Same(rounded, got)) {
      return "element " + std::to_string(i) + " is " + std::to_string(got) + ", not " +
             std::to_string(rounded);
    }
  }
  return {};
}

inline std::string BoolDifference(std::int32_t reduce, const Inputs& inputs, const unsigned char* out,
                                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t yes = 0;
    for (const auto& input : inputs) yes += input[i] != 0 ? 1 : 0;
    const bool all =
        reduce == DTRUN_PROD || reduce == DTRUN_MIN || reduce == DTRUN_BAND || reduce == DTRUN_LAND;
    const bool want = reduce == DTRUN_BXOR ? yes % 2 == 1 : all ? yes == inputs.size() : yes > 0;
    if (out[i] != (want ? 1 : 0)) return "element " + std::to_string(i) + " is " + std::to_string(out[i]);
  }
  return {};
}

// "" when `out` is the reduction of `inputs`; any NaN is as good as another.
inline std::string Difference(std::int32_t dtype, std::int32_t reduce, const Inputs& inputs,
                              const unsigned char* out, std::size_t count) {
  switch (dtype) {
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: return SixteenBitDifference(dtype, reduce, inputs, out, count);
    case DTRUN_FLOAT32: return DifferenceOf<float>(reduce, inputs, out, count);
    case DTRUN_FLOAT64: return DifferenceOf<double>(reduce, inputs, out, count);
    case DTRUN_INT8: return DifferenceOf<std::int8_t>(reduce, inputs, out, count);
    case DTRUN_INT16: return DifferenceOf<std::int16_t>(reduce, inputs, out, count);
    case DTRUN_INT32: return DifferenceOf<std::int32_t>(reduce, inputs, out, count);
    case DTRUN_INT64: return DifferenceOf<std::int64_t>(reduce, inputs, out, count);
    case DTRUN_UINT8: return DifferenceOf<std::uint8_t>(reduce, inputs, out, count);
    case DTRUN_UINT16: return DifferenceOf<std::uint16_t>(reduce, inputs, out, count);
    case DTRUN_UINT32: return DifferenceOf<std::uint32_t>(reduce, inputs, out, count);
    case DTRUN_UINT64: return DifferenceOf<std::uint64_t>(reduce, inputs, out, count);
    case DTRUN_BOOL: return BoolDifference(reduce, inputs, out, count);
    case DTRUN_COMPLEX64: return DifferenceOf<std::complex<float>>(reduce, inputs, out, count);
    case DTRUN_COMPLEX128: return DifferenceOf<std::complex<double>>(reduce, inputs, out, count);
    default: return "unknown type";
  }
}

// The first element that differs in more than a NaN's bits; `count` when none does.
inline std::size_t FirstDifference(std::int32_t dtype, const unsigned char* a, const unsigned char* b,
                                   std::size_t count) {
  const std::size_t width = ElementBytes(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char* const x = a + i * width;
    const unsigned char* const y = b + i * width;
    bool same = std::memcmp(x, y, width) == 0;
    switch (dtype) {
      case DTRUN_FLOAT16:
      case DTRUN_BFLOAT16: same = Same(Load(dtype, x), Load(dtype, y)); break;
      case DTRUN_FLOAT32: same = Same(Take<float>(x), Take<float>(y)); break;
      case DTRUN_FLOAT64: same = Same(Take<double>(x), Take<double>(y)); break;
      case DTRUN_COMPLEX64: same = Same(Take<std::complex<float>>(x), Take<std::complex<float>>(y)); break;
      case DTRUN_COMPLEX128: same = Same(Take<std::complex<double>>(x), Take<std::complex<double>>(y)); break;
      default: break;
    }
    if (!same) return i;
  }
  return count;
}

inline std::string ScaleDifference(std::int32_t dtype, const unsigned char* in, const unsigned char* out,
                                   std::size_t count, double factor) {
  const bool doubles = dtype == DTRUN_FLOAT64 || dtype == DTRUN_COMPLEX128;
  const bool floats = dtype == DTRUN_FLOAT32 || dtype == DTRUN_COMPLEX64;
  const std::size_t parts = dtype == DTRUN_COMPLEX64 || dtype == DTRUN_COMPLEX128 ? 2 * count : count;
  for (std::size_t i = 0; i < parts; ++i) {
    bool same = false;
    if (doubles) {
      same = Same(Take<double>(in + 8 * i) * factor, Take<double>(out + 8 * i));
    } else if (floats) {
      same = Same(Take<float>(in + 4 * i) * static_cast<float>(factor), Take<float>(out + 4 * i));
    } else {
      const float want = static_cast<float>(Load(dtype, in + 2 * i)) * static_cast<float>(factor);
      const std::uint16_t word = dtype == DTRUN_FLOAT16 ? Encode(want, 10, 15) : Encode(want, 7, 127);
      same = Same(Load(dtype, reinterpret_cast<const unsigned char*>(&word)), Load(dtype, out + 2 * i));
    }
    if (!same) return "part " + std::to_string(i) + " is wrong";
  }
  return {};
}

}  // namespace dtrun::kernels::reference

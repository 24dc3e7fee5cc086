#include "values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dtrun::conformance {
namespace {

// A binary format with a 16-bit word, of numbers that are exact in it, infinities and NaN.
std::uint16_t Encode16(double value, int mantissa_bits, int bias) {
  if (value == 0) return 0;
  if (!std::isfinite(value)) {
    const int special = ((1 << (15 - mantissa_bits)) - 1) << mantissa_bits;
    const int quiet = std::isnan(value) ? 1 << (mantissa_bits - 1) : 0;
    return static_cast<std::uint16_t>(special | quiet | (std::signbit(value) ? 0x8000 : 0));
  }
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent) * 2 - 1;  // 1.f
  const auto mantissa = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(fraction, mantissa_bits)));
  const auto word = static_cast<std::uint16_t>(((exponent - 1 + bias) << mantissa_bits) + mantissa);
  return static_cast<std::uint16_t>(word | (value < 0 ? 0x8000 : 0));
}

double Decode16(std::uint16_t word, int mantissa_bits, int bias) {
  const int exponent = (word & 0x7fff) >> mantissa_bits;
  const int mantissa = word & ((1 << mantissa_bits) - 1);
  if (exponent == (1 << (15 - mantissa_bits)) - 1) {
    const double special =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return std::copysign(special, (word & 0x8000) != 0 ? -1 : 1);
  }
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return (word & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T>
void PutAs(unsigned char* to, double value) {
  const auto narrow = static_cast<T>(value);
  std::memcpy(to, &narrow, sizeof narrow);
}
template <class T>
double TakeAs(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

bool Logical(const TypeInfo& type, std::int32_t reduce) {
  return type.family == Family::kBool || reduce == DTRUN_LAND || reduce == DTRUN_LOR;
}

// As many bits as the type has, the sign bit spread; 2187, the largest product of 7 ranks, is
// the only thing that does not fit 8 bits.
double Wrapped(const TypeInfo& type, double value) {
  if (type.width > 1) return value;
  const auto low = static_cast<std::uint8_t>(static_cast<std::int64_t>(value));
  return type.family == Family::kSigned ? static_cast<std::int8_t>(low) : low;
}

double Bitwise(std::int32_t reduce, double a, double b) {
  const auto x = static_cast<std::int64_t>(a);
  const auto y = static_cast<std::int64_t>(b);
  return static_cast<double>(reduce == DTRUN_BAND ? x & y : reduce == DTRUN_BOR ? x | y : x ^ y);
}

double Truth(std::int32_t reduce, double a, double b) {
  const bool x = a != 0;
  const bool y = b != 0;
  switch (reduce) {
    case DTRUN_PROD:
    case DTRUN_MIN:
    case DTRUN_BAND:
    case DTRUN_LAND: return x && y;
    case DTRUN_BXOR: return x != y;
    default: return x || y;
  }
}

Number Combined(const TypeInfo& type, std::int32_t reduce, Number a, Number b) {
  if (Logical(type, reduce)) return Truth(reduce, a.real(), b.real());
  switch (reduce) {
    case DTRUN_PROD: return a * b;
    case DTRUN_MIN: return std::min(a.real(), b.real());
    case DTRUN_MAX: return std::max(a.real(), b.real());
    case DTRUN_BAND:
    case DTRUN_BOR:
    case DTRUN_BXOR: return Bitwise(reduce, a.real(), b.real());
    default: return a + b;
  }
}

}  // namespace

const std::vector<TypeInfo>& Types() {
  static const std::vector<TypeInfo> types = {
      {DTRUN_FLOAT16, "float16", 2, Family::kFloating, 1.0 / 2048},
      {DTRUN_BFLOAT16, "bfloat16", 2, Family::kFloating, 1.0 / 256},
      {DTRUN_FLOAT32, "float32", 4, Family::kFloating, 1.0 / (1 << 24)},
      {DTRUN_FLOAT64, "float64", 8, Family::kFloating, 1e-15},
      {DTRUN_INT32, "int32", 4, Family::kSigned, 0},
      {DTRUN_INT64, "int64", 8, Family::kSigned, 0},
      {DTRUN_UINT8, "uint8", 1, Family::kUnsigned, 0},
      {DTRUN_INT8, "int8", 1, Family::kSigned, 0},
      {DTRUN_INT16, "int16", 2, Family::kSigned, 0},
      {DTRUN_UINT16, "uint16", 2, Family::kUnsigned, 0},
      {DTRUN_UINT32, "uint32", 4, Family::kUnsigned, 0},
      {DTRUN_UINT64, "uint64", 8, Family::kUnsigned, 0},
      {DTRUN_BOOL, "bool", 1, Family::kBool, 0},
      {DTRUN_COMPLEX64, "complex64", 8, Family::kComplex, 1.0 / (1 << 23)},
      {DTRUN_COMPLEX128, "complex128", 16, Family::kComplex, 1e-15}};
  return types;
}

const TypeInfo& TypeOf(std::int32_t dtype) {
  return *std::find_if(Types().begin(), Types().end(),
                       [&](const TypeInfo& type) { return type.dtype == dtype; });
}

const std::vector<ReduceInfo>& Reduces() {
  static const std::vector<ReduceInfo> reduces = {
      {DTRUN_SUM, "sum"},   {DTRUN_PROD, "prod"}, {DTRUN_MIN, "min"},
      {DTRUN_MAX, "max"},   {DTRUN_AVG, "avg"},   {DTRUN_PREMUL_SUM, "premul-sum"},
      {DTRUN_BAND, "band"}, {DTRUN_BOR, "bor"},   {DTRUN_BXOR, "bxor"},
      {DTRUN_LAND, "land"}, {DTRUN_LOR, "lor"}};
  return reduces;
}

bool HasMeaning(const TypeInfo& type, std::int32_t reduce) {
  const bool floating = type.family == Family::kFloating;
  const bool complex = type.family == Family::kComplex;
  switch (reduce) {
    case DTRUN_SUM:
    case DTRUN_PROD: return true;
    case DTRUN_MIN:
    case DTRUN_MAX: return !complex;
    case DTRUN_AVG:
    case DTRUN_PREMUL_SUM: return floating || complex;
    case DTRUN_BAND:
    case DTRUN_BOR:
    case DTRUN_BXOR:
    case DTRUN_LAND:
    case DTRUN_LOR: return !floating && !complex;
    default: return false;
  }
}

Number Value(const TypeInfo& type, std::int32_t reduce, int rank, std::uint64_t index) {
  const auto plain =
      static_cast<double>((index * 7 + static_cast<std::uint64_t>(rank) * 5 + index / 1000) % 3 + 1);
  if (Logical(type, reduce)) return plain - 1;
  const bool negative = index % 5 == 4 && type.family != Family::kUnsigned;
  const double real = negative ? -plain : plain;
  return type.family == Family::kComplex ? Number(real, static_cast<double>(index % 4) - 1) : Number(real);
}

double ScaleOf(int rank) { return 0.5 * (rank + 1); }

Number Reduced(const TypeInfo& type, std::int32_t reduce, int ranks, std::uint64_t index) {
  const auto of = [&](int rank) {
    const Number value = Value(type, reduce, rank, index);
    return reduce == DTRUN_PREMUL_SUM ? value * ScaleOf(rank) : value;
  };
  Number result = of(0);
  if (Logical(type, reduce)) result = result.real() != 0 ? 1 : 0;
  for (int rank = 1; rank < ranks; ++rank) result = Combined(type, reduce, result, of(rank));
  if (reduce == DTRUN_AVG) return result / static_cast<double>(ranks);
  return type.precision == 0 ? Number(Wrapped(type, result.real())) : result;
}

bool Rounded(const TypeInfo& type, std::int32_t reduce) {
  return type.precision > 0 && (reduce == DTRUN_AVG || (reduce == DTRUN_PROD && type.width == 2));
}

void Put(const TypeInfo& type, unsigned char* to, Number value) {
  const double real = value.real();
  std::uint16_t word = 0;
  switch (type.dtype) {
    case DTRUN_FLOAT16: word = Encode16(real, 10, 15); break;
    case DTRUN_BFLOAT16: word = Encode16(real, 7, 127); break;
    case DTRUN_FLOAT32: return PutAs<float>(to, real);
    case DTRUN_FLOAT64: return PutAs<double>(to, real);
    case DTRUN_INT8: return PutAs<std::int8_t>(to, real);
    case DTRUN_INT16: return PutAs<std::int16_t>(to, real);
    case DTRUN_INT32: return PutAs<std::int32_t>(to, real);
    case DTRUN_INT64: return PutAs<std::int64_t>(to, real);
    case DTRUN_UINT16: return PutAs<std::uint16_t>(to, real);
    case DTRUN_UINT32: return PutAs<std::uint32_t>(to, real);
    case DTRUN_UINT64: return PutAs<std::uint64_t>(to, real);
    case DTRUN_COMPLEX64: PutAs<float>(to, real); return PutAs<float>(to + 4, value.imag());
    case DTRUN_COMPLEX128: PutAs<double>(to, real); return PutAs<double>(to + 8, value.imag());
    default: return PutAs<std::uint8_t>(to, real);
  }
  std::memcpy(to, &word, sizeof word);
}

Number Take(const TypeInfo& type, const unsigned char* from) {
  std::uint16_t word = 0;
  if (type.width == 2) std::memcpy(&word, from, 2);
  switch (type.dtype) {
    case DTRUN_FLOAT16: return Decode16(word, 10, 15);
    case DTRUN_BFLOAT16: return Decode16(word, 7, 127);
    case DTRUN_FLOAT32: return TakeAs<float>(from);
    case DTRUN_FLOAT64: return TakeAs<double>(from);
    case DTRUN_INT8: return TakeAs<std::int8_t>(from);
    case DTRUN_INT16: return TakeAs<std::int16_t>(from);
    case DTRUN_INT32: return TakeAs<std::int32_t>(from);
    case DTRUN_INT64: return TakeAs<std::int64_t>(from);
    case DTRUN_UINT16: return TakeAs<std::uint16_t>(from);
    case DTRUN_UINT32: return TakeAs<std::uint32_t>(from);
    case DTRUN_UINT64: return TakeAs<std::uint64_t>(from);
    case DTRUN_COMPLEX64: return {TakeAs<float>(from), TakeAs<float>(from + 4)};
    case DTRUN_COMPLEX128: return {TakeAs<double>(from), TakeAs<double>(from + 8)};
    default: return TakeAs<std::uint8_t>(from);
  }
}

std::string Difference(const TypeInfo& type, const unsigned char* at, Number want, double tolerance) {
  const Number got = Take(type, at);
  // A NaN fails this comparison, as it must.
  if (std::abs(got - want) <= std::abs(want) * tolerance) return {};
  const auto text = [&](Number number) {
    return std::to_string(number.real()) +
           (type.family == Family::kComplex ? " + " + std::to_string(number.imag()) + "i" : "");
  };
  return text(got) + ", not " + text(want);
}

}  // namespace dtrun::conformance

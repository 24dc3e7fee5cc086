#include "values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dtrun/abi/types.h"

namespace dtrun::conformance {
namespace {

// A binary format with a 16-bit word, of numbers that are exact in it.
std::uint16_t Encode16(double value, int mantissa_bits, int bias) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent) * 2 - 1;  // 1.f
  const auto mantissa = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(fraction, mantissa_bits)));
  const auto word = static_cast<std::uint16_t>(((exponent - 1 + bias) << mantissa_bits) + mantissa);
  return static_cast<std::uint16_t>(word | (value < 0 ? 0x8000 : 0));
}

double Decode16(std::uint16_t word, int mantissa_bits, int bias) {
  const int exponent = (word & 0x7fff) >> mantissa_bits;
  const int mantissa = word & ((1 << mantissa_bits) - 1);
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return (word & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T>
void Put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
double Take(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

void Store(std::int32_t dtype, unsigned char* to, double value) {
  switch (dtype) {
    case DTRUN_FLOAT16: return Put(to, Encode16(value, 10, 15));
    case DTRUN_BFLOAT16: return Put(to, Encode16(value, 7, 127));
    case DTRUN_FLOAT32: return Put(to, static_cast<float>(value));
    case DTRUN_FLOAT64: return Put(to, value);
    case DTRUN_INT32: return Put(to, static_cast<std::int32_t>(value));
    case DTRUN_INT64: return Put(to, static_cast<std::int64_t>(value));
    default: return Put(to, static_cast<std::uint8_t>(value));
  }
}

double Load(std::int32_t dtype, const unsigned char* from) {
  std::uint16_t word = 0;
  switch (dtype) {
    case DTRUN_FLOAT16: std::memcpy(&word, from, 2); return Decode16(word, 10, 15);
    case DTRUN_BFLOAT16: std::memcpy(&word, from, 2); return Decode16(word, 7, 127);
    case DTRUN_FLOAT32: return Take<float>(from);
    case DTRUN_FLOAT64: return Take<double>(from);
    case DTRUN_INT32: return Take<std::int32_t>(from);
    case DTRUN_INT64: return Take<std::int64_t>(from);
    default: return Take<std::uint8_t>(from);
  }
}

}  // namespace

const std::vector<TypeInfo>& Types() {
  static const std::vector<TypeInfo> types = {{DTRUN_FLOAT16, "float16", 2, true, 1.0 / 2048},
                                              {DTRUN_BFLOAT16, "bfloat16", 2, true, 1.0 / 256},
                                              {DTRUN_FLOAT32, "float32", 4, true, 1.0 / (1 << 24)},
                                              {DTRUN_FLOAT64, "float64", 8, true, 1e-15},
                                              {DTRUN_INT32, "int32", 4, false, 0},
                                              {DTRUN_INT64, "int64", 8, false, 0},
                                              {DTRUN_UINT8, "uint8", 1, false, 0}};
  return types;
}

const TypeInfo& TypeOf(std::int32_t dtype) {
  return *std::find_if(Types().begin(), Types().end(),
                       [&](const TypeInfo& type) { return type.dtype == dtype; });
}

const std::vector<ReduceInfo>& Reduces() {
  static const std::vector<ReduceInfo> reduces = {
      {DTRUN_SUM, "sum"}, {DTRUN_PROD, "prod"}, {DTRUN_MIN, "min"}, {DTRUN_MAX, "max"}, {DTRUN_AVG, "avg"}};
  return reduces;
}

double Value(int rank, std::uint64_t index) {
  return static_cast<double>((index * 7 + static_cast<std::uint64_t>(rank) * 5 + index / 1000) % 3 + 1);
}

double Reduced(std::int32_t reduce, int ranks, std::uint64_t index) {
  double result = Value(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = Value(rank, index);
    switch (reduce) {
      case DTRUN_PROD: result *= next; break;
      case DTRUN_MIN: result = std::min(result, next); break;
      case DTRUN_MAX: result = std::max(result, next); break;
      default: result += next;
    }
  }
  return reduce == DTRUN_AVG ? result / ranks : result;
}

Buffer Filled(const TypeInfo& type, std::uint64_t count, const std::function<double(std::uint64_t)>& value) {
  Buffer buffer(count * type.width + 1);  // never empty, so that data() is no null pointer
  for (std::uint64_t i = 0; i < count; ++i) Store(type.dtype, buffer.data() + i * type.width, value(i));
  return buffer;
}

std::string Difference(const TypeInfo& type, const unsigned char* data, std::uint64_t count,
                       const std::function<double(std::uint64_t)>& expected, bool rounded) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const double want = expected(i);
    const double got = Load(type.dtype, data + i * type.width);
    // A NaN fails this comparison, as it must.
    if (std::fabs(got - want) <= (rounded ? std::fabs(want) * type.precision : 0)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got) + ", not " + std::to_string(want);
  }
  return {};
}

}  // namespace dtrun::conformance

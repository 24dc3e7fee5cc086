#include "tools/bench/program/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/text.h"
#include "dtrun/abi/types.h"

namespace dtrun::bench {
namespace {

constexpr std::array<Element, 12> kElements = {{{"float32", DTRUN_FLOAT32, 4, Form::kFloat32},
                                                {"float64", DTRUN_FLOAT64, 8, Form::kFloat64},
                                                {"float16", DTRUN_FLOAT16, 2, Form::kFloat16},
                                                {"bfloat16", DTRUN_BFLOAT16, 2, Form::kBfloat16},
                                                {"int8", DTRUN_INT8, 1, Form::kInteger},
                                                {"int16", DTRUN_INT16, 2, Form::kInteger},
                                                {"int32", DTRUN_INT32, 4, Form::kInteger},
                                                {"int64", DTRUN_INT64, 8, Form::kInteger},
                                                {"uint8", DTRUN_UINT8, 1, Form::kInteger},
                                                {"uint16", DTRUN_UINT16, 2, Form::kInteger},
                                                {"uint32", DTRUN_UINT32, 4, Form::kInteger},
                                                {"uint64", DTRUN_UINT64, 8, Form::kInteger}}};

// IEEE binary16 of a whole number; excess fraction bits are truncated.
std::uint16_t Half(int value) {
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::bit_width(static_cast<unsigned>(value))) - 1;
  const int fraction = exponent <= 10 ? value << (10 - exponent) : value >> (exponent - 10);
  return static_cast<std::uint16_t>(((exponent + 15) << 10) | (fraction & 0x3ff));
}

double FromHalf(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 0x1f) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(0x400 + fraction, exponent - 25);
}

template <class T>
T Read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Result<Element> ParseElement(std::string_view name) {
  std::vector<std::string> names;
  for (const Element& element : kElements) {
    if (name == element.name) return element;
    names.emplace_back(element.name);
  }
  const auto nearest = Nearest(name, names);
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("unknown type '{}'{}; expected one of {}", name,
                           nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "", ElementNames())};
}

std::string ElementNames() {
  std::vector<std::string> names;
  for (const Element& element : kElements) names.emplace_back(element.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void Encode(const Element& element, int value, void* to) {
  const auto real = static_cast<float>(value);
  const auto twice = static_cast<double>(value);
  const auto whole = static_cast<std::int64_t>(value);
  const std::uint16_t half = Half(value);
  const auto brain = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(real) >> 16);
  switch (element.form) {
    case Form::kInteger: std::memcpy(to, &whole, element.size); break;  // little-endian, like all we run on
    case Form::kFloat16: std::memcpy(to, &half, sizeof half); break;
    case Form::kBfloat16: std::memcpy(to, &brain, sizeof brain); break;
    case Form::kFloat32: std::memcpy(to, &real, sizeof real); break;
    case Form::kFloat64: std::memcpy(to, &twice, sizeof twice); break;
  }
}

double Decode(const Element& element, const void* from) {
  switch (element.form) {
    case Form::kFloat16: return FromHalf(Read<std::uint16_t>(from));
    case Form::kBfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(Read<std::uint16_t>(from)) << 16);
    case Form::kFloat32: return Read<float>(from);
    case Form::kFloat64: return Read<double>(from);
    case Form::kInteger: break;
  }
  std::uint64_t whole = 0;
  std::memcpy(&whole, from, element.size);
  return static_cast<double>(whole);
}

}  // namespace dtrun::bench

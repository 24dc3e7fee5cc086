// Buffers of every element type, filled with numbers of known reductions.
// Pure functions; any thread.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dtrun/abi/types.h"

namespace dtrun::conformance {

enum class Family { kFloating, kSigned, kUnsigned, kBool, kComplex };

struct TypeInfo {
  std::int32_t dtype;
  const char* name;
  std::size_t width;
  Family family;
  double precision;  // relative error of one rounding; 0 for integers
};
const std::vector<TypeInfo>& Types();
const TypeInfo& TypeOf(std::int32_t dtype);

struct ReduceInfo {
  std::int32_t reduce;
  const char* name;
};
const std::vector<ReduceInfo>& Reduces();
// The table of types.h.
bool HasMeaning(const TypeInfo& type, std::int32_t reduce);

// An element; real types have no imaginary part.
using Number = std::complex<double>;

// Element `index` of rank `rank`: 1, 2 or 3 in magnitude, so that sums and products of a few
// ranks need no rounding beyond the last one; 0, 1 or 2 where truth is what counts.
Number Value(const TypeInfo& type, std::int32_t reduce, int rank, std::uint64_t index);
// The factor of `rank` for DTRUN_PREMUL_SUM.
double ScaleOf(int rank);
// What the ranks' elements `index` combine to.
Number Reduced(const TypeInfo& type, std::int32_t reduce, int ranks, std::uint64_t index);
// Whether that may carry one rounding error in `type`.
bool Rounded(const TypeInfo& type, std::int32_t reduce);

using Buffer = std::vector<unsigned char>;
void Put(const TypeInfo& type, unsigned char* to, Number value);
Number Take(const TypeInfo& type, const unsigned char* from);
// "" when the element is `want`, else how it differs; `tolerance` is relative.
std::string Difference(const TypeInfo& type, const unsigned char* at, Number want, double tolerance);

}  // namespace dtrun::conformance

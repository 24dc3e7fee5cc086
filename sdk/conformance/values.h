// Buffers of every element type, filled with numbers whose reductions are known.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrun::conformance {

struct TypeInfo {
  std::int32_t dtype;
  const char* name;
  std::size_t width;
  bool floating;
  double precision;  // relative error of one rounding; 0 for integers
};
const std::vector<TypeInfo>& Types();
const TypeInfo& TypeOf(std::int32_t dtype);

struct ReduceInfo {
  std::int32_t reduce;
  const char* name;
};
const std::vector<ReduceInfo>& Reduces();

// Element `index` of rank `rank`: 1, 2 or 3, so that sums and products of a few ranks are
// exact in every type.
double Value(int rank, std::uint64_t index);
double Reduced(std::int32_t reduce, int ranks, std::uint64_t index);

using Buffer = std::vector<unsigned char>;
Buffer Filled(const TypeInfo& type, std::uint64_t count, const std::function<double(std::uint64_t)>& value);

// "" when element i of `data` is `expected(i)` for all i, else where and how it differs.
// `rounded`: the result may carry one rounding error.
std::string Difference(const TypeInfo& type, const unsigned char* data, std::uint64_t count,
                       const std::function<double(std::uint64_t)>& expected, bool rounded = false);

}  // namespace dtrun::conformance

#include "kernels.h"

#include <algorithm>
#include <type_traits>

#include "convert.h"
#include "dtrun/abi/types.h"

namespace dtrun::gloo_plugin {
namespace {

// Elements combined at a time: the accumulators stay in the first-level cache.
constexpr std::size_t kBlock = 1024;

// How elements of one type are stored and what they are combined in.
template <class T>
struct Native {
  using Stored = T;
  using Wide = T;
  static Wide Load(Stored value) { return value; }
  static Stored Store(Wide value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  using Wide = float;
  static Wide Load(Stored value) { return HalfToFloat(value); }
  static Stored Store(Wide value) { return FloatToHalf(value); }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Wide = float;
  static Wide Load(Stored value) { return Bfloat16ToFloat(value); }
  static Stored Store(Wide value) { return FloatToBfloat16(value); }
};

// Signed overflow is undefined in C++; unsigned arithmetic wraps, as types.h promises. The
// 8-bit type is promoted to int, whose range its products do not leave.
template <class T>
T Wrapping(T a, T b, bool product) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto x = static_cast<Unsigned>(a);
    const auto y = static_cast<Unsigned>(b);
    return static_cast<T>(static_cast<Unsigned>(product ? x * y : x + y));
  } else {
    return product ? a * b : a + b;
  }
}

struct Sum {
  template <class T>
  static T Combine(T a, T b) {
    return Wrapping(a, b, false);
  }
};
struct Product {
  template <class T>
  static T Combine(T a, T b) {
    return Wrapping(a, b, true);
  }
};
struct Minimum {
  template <class T>
  static T Combine(T a, T b) {
    return b < a ? b : a;
  }
};
struct Maximum {
  template <class T>
  static T Combine(T a, T b) {
    return a < b ? b : a;
  }
};

template <class Type, class Operation, bool kAverage>
void Reduce(void* out, const void* const* sources, int source_count, std::size_t count) {
  using Stored = typename Type::Stored;
  using Wide = typename Type::Wide;
  Wide wide[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const Stored* first = static_cast<const Stored*>(sources[0]) + begin;
    for (std::size_t i = 0; i < n; ++i) wide[i] = Type::Load(first[i]);
    for (int s = 1; s < source_count; ++s) {
      const Stored* next = static_cast<const Stored*>(sources[s]) + begin;
      for (std::size_t i = 0; i < n; ++i) wide[i] = Operation::Combine(wide[i], Type::Load(next[i]));
    }
    if constexpr (kAverage) {
      const Wide ranks = static_cast<Wide>(source_count);
      for (std::size_t i = 0; i < n; ++i) wide[i] /= ranks;
    }
    Stored* to = static_cast<Stored*>(out) + begin;
    for (std::size_t i = 0; i < n; ++i) to[i] = Type::Store(wide[i]);
  }
}

template <class Type>
ReduceKernel KernelOf(std::int32_t reduce) {
  switch (reduce) {
    case DTRUN_SUM: return &Reduce<Type, Sum, false>;
    case DTRUN_PROD: return &Reduce<Type, Product, false>;
    case DTRUN_MIN: return &Reduce<Type, Minimum, false>;
    case DTRUN_MAX: return &Reduce<Type, Maximum, false>;
    case DTRUN_AVG:
      if constexpr (std::is_floating_point_v<typename Type::Wide>) return &Reduce<Type, Sum, true>;
      return nullptr;
    default: return nullptr;
  }
}

}  // namespace

ReduceKernel KernelFor(std::int32_t dtype, std::int32_t reduce) {
  switch (dtype) {
    case DTRUN_FLOAT16: return KernelOf<Half>(reduce);
    case DTRUN_BFLOAT16: return KernelOf<Bfloat16>(reduce);
    case DTRUN_FLOAT32: return KernelOf<Native<float>>(reduce);
    case DTRUN_FLOAT64: return KernelOf<Native<double>>(reduce);
    case DTRUN_INT32: return KernelOf<Native<std::int32_t>>(reduce);
    case DTRUN_INT64: return KernelOf<Native<std::int64_t>>(reduce);
    case DTRUN_UINT8: return KernelOf<Native<std::uint8_t>>(reduce);
    default: return nullptr;
  }
}

std::size_t ElementBytes(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: return 2;
    case DTRUN_FLOAT32:
    case DTRUN_INT32: return 4;
    case DTRUN_FLOAT64:
    case DTRUN_INT64: return 8;
    case DTRUN_UINT8: return 1;
    default: return 0;
  }
}

bool IsFloating(std::int32_t dtype) {
  return dtype == DTRUN_FLOAT16 || dtype == DTRUN_BFLOAT16 || dtype == DTRUN_FLOAT32 ||
         dtype == DTRUN_FLOAT64;
}

}  // namespace dtrun::gloo_plugin

// How two vectors of lanes combine. Included by each variant, like vector.h.
//
// Pure functions; any thread.
#pragma once

#include "vector.h"

namespace dtrun::kernels {
namespace {

struct Sum {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    return a + b;
  }
};
struct Product {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    return a * b;
  }
};
// A comparison with NaN is false, so a NaN in `b` is chosen by the first line and one in `a` by the second.
struct Minimum {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    const V less = a < b ? a : b;
    return a != a ? a : less;
  }
};
struct Maximum {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    const V more = a > b ? a : b;
    return a != a ? a : more;
  }
};
struct And {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    return a & b;
  }
};
struct Or {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    return a | b;
  }
};
struct Xor {
  template <class V>
  [[gnu::always_inline]] static V Lanes(V a, V b) {
    return a ^ b;
  }
};

template <class Operation, class V>
[[gnu::always_inline]] inline V Combine(V a, V b) {
  return Operation::Lanes(a, b);
}
template <class Operation>
[[gnu::always_inline]] inline FloatPair Combine(FloatPair a, FloatPair b) {
  return {Operation::Lanes(a.low, b.low), Operation::Lanes(a.high, b.high)};
}

// What happens to a sum before it is stored.
struct Keep {
  explicit Keep(int) {}
  template <class V>
  [[gnu::always_inline]] V operator()(V wide) const {
    return wide;
  }
};
// Division by a power of two is an exact multiplication, and several times faster.
template <class Lane>
struct Divide {
  explicit Divide(int ranks)
      : divisor(static_cast<Lane>(ranks)), factor(Lane{1} / divisor), exact((ranks & (ranks - 1)) == 0) {}
  template <class V>
  [[gnu::always_inline]] V operator()(V wide) const {
    return exact ? wide * factor : wide / divisor;
  }
  [[gnu::always_inline]] FloatPair operator()(FloatPair wide) const {
    return {(*this)(wide.low), (*this)(wide.high)};
  }
  Lane divisor;
  Lane factor;
  bool exact;
};
template <class Lane>
struct Multiply {
  // The lower half of a NaN is zero, as PairwiseRounding needs it.
  explicit Multiply(double by) : factor(by == by ? static_cast<Lane>(by) : Lane{__builtin_nanf("")}) {}
  template <class V>
  [[gnu::always_inline]] V operator()(V wide) const {
    return wide * factor;
  }
  [[gnu::always_inline]] FloatPair operator()(FloatPair wide) const {
    return {wide.low * factor, wide.high * factor};
  }
  Lane factor;
};

}  // namespace
}  // namespace dtrun::kernels

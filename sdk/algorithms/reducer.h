// The arithmetic of a reduction, on partial results that travel between ranks.
//
// A partial result of a 16-bit float is a float32 vector, so that nothing is rounded on the way;
// for any other type it is a vector of that type. A value; one thread.
#pragma once

#include <cstring>

#include "call.h"
#include "dtrun/kernels.hpp"

namespace dtrun::algorithms {

// data /= ranks, rounded once: a factor of 1 / ranks would round twice. REQUIRES a floating or
// complex `dtype` of at least 32 bits a number.
void Divide(void* data, std::size_t count, std::int32_t dtype, int ranks);

class Reducer {
 public:
  Reducer(const dtrun_op& op, int ranks)
      : dtype_(op.dtype),
        reduce_(op.reduce),
        ranks_(ranks),
        scale_(op.scale),
        partial_(narrow() ? std::int32_t{DTRUN_FLOAT32} : op.dtype),
        combine_(kernels::ReduceFor(partial_, Plain(op.reduce) ? op.reduce : std::int32_t{DTRUN_SUM})) {}

  std::size_t width() const { return kernels::ElementBytes(dtype_); }
  std::size_t partial_width() const { return kernels::ElementBytes(partial_); }
  // Partial results are wider than elements.
  bool narrow() const { return dtype_ == DTRUN_FLOAT16 || dtype_ == DTRUN_BFLOAT16; }
  // Elements can be combined unchanged.
  bool raw() const { return reduce_ != DTRUN_PREMUL_SUM; }

  // partial = this rank's share of the result. In place if widths are equal.
  void Begin(void* partial, const void* elements, std::size_t count) const {
    if (narrow()) {
      kernels::Widen(static_cast<float*>(partial), elements, count, dtype_);
      if (!raw()) kernels::Scale(partial, partial, count, partial_, scale_);
    } else if (!raw()) {
      kernels::Scale(partial, elements, count, partial_, scale_);
    } else if (partial != elements && count > 0) {
      std::memcpy(partial, elements, count * width());
    }
  }
  // out = low combined with high; the ranks of `low` precede those of `high`. out is one of them or
  // neither.
  void Combine(void* out, const void* low, const void* high, std::size_t count) const {
    const void* const sources[] = {low, high};
    combine_(out, sources, 2, count);
  }
  // elements = the final result. In place if widths are equal.
  void End(void* elements, void* partial, std::size_t count) const {
    if (reduce_ == DTRUN_AVG) Divide(partial, count, partial_, ranks_);
    if (narrow()) {
      kernels::Narrow(elements, static_cast<const float*>(partial), count, dtype_);
    } else if (partial != elements && count > 0) {
      std::memcpy(elements, partial, count * width());
    }
  }
  // out = the final result of one vector per rank. REQUIRES raw().
  void CombineAll(void* out, const void* const* sources, std::size_t count) const {
    kernels::ReduceFor(dtype_, reduce_)(out, sources, ranks_, count);
  }

 private:
  static bool Plain(std::int32_t reduce) { return reduce != DTRUN_AVG && reduce != DTRUN_PREMUL_SUM; }

  std::int32_t dtype_;
  std::int32_t reduce_;
  int ranks_;
  double scale_;
  std::int32_t partial_;
  kernels::Reduce combine_;
};

}  // namespace dtrun::algorithms

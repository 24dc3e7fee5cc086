// kernels.hpp - combining the buffers of several ranks, element by element.
//
// The one place that knows how to add, multiply or compare elements of every type; core
// and plugins link it as `dtrun::kernels`, a static library with hidden symbols. The
// processor's vector instructions are detected once, at the first call; nothing is built
// for a particular machine. Pure functions; any thread; no exceptions, no allocation.
//
// Sources are combined in the order given, so a result does not depend on how a buffer was
// cut or which algorithm carried it. float16 and bfloat16 are widened to float32, combined
// there and rounded once (to nearest, ties to even); integer sums and products wrap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtrun/abi/types.h"

namespace dtrun::kernels {

// Bytes of one element; 0 for an unknown type.
constexpr std::size_t ElementBytes(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_UINT8:
    case DTRUN_INT8:
    case DTRUN_BOOL: return 1;
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16:
    case DTRUN_INT16:
    case DTRUN_UINT16: return 2;
    case DTRUN_FLOAT32:
    case DTRUN_INT32:
    case DTRUN_UINT32: return 4;
    case DTRUN_FLOAT64:
    case DTRUN_INT64:
    case DTRUN_UINT64:
    case DTRUN_COMPLEX64: return 8;
    case DTRUN_COMPLEX128: return 16;
    default: return 0;
  }
}

// Alignment that a buffer of `dtype` needs; 0 for an unknown type.
constexpr std::size_t ElementAlignment(std::int32_t dtype) {
  return dtype == DTRUN_COMPLEX64 || dtype == DTRUN_COMPLEX128 ? ElementBytes(dtype) / 2
                                                               : ElementBytes(dtype);
}

// The table of types.h: whether `reduce` has a meaning for `dtype`. False for unknown values.
bool Supports(std::int32_t dtype, std::int32_t reduce);

// How the result is written: through the cache, or past it when it is not read again soon. Streaming
// stores are not ordered with other stores: call Fence before telling another thread.
enum class Stores { kCached, kStreaming };
void Fence();

// Writes to `out` the reduction of `source_count` >= 1 buffers of `count` elements each. `out`
// may be one of the sources; otherwise it overlaps none. DTRUN_AVG divides by source_count.
using Reduce = void (*)(void* out, const void* const* sources, int source_count, std::size_t count);

// REQUIRES Supports(dtype, reduce). DTRUN_PREMUL_SUM is DTRUN_SUM: scale the sources first.
Reduce ReduceFor(std::int32_t dtype, std::int32_t reduce, Stores stores = Stores::kCached);

// For two ranks that take turns in one buffer: combines sources[0] and sources[1] as Reduce does
// and then copies `next` over `shared`, which is one of the two. Reading a cache line that another
// processor wrote and writing it at once moves it between their caches once instead of twice.
// `out` may be the source that is not shared.
using Trade = void (*)(void* out, const void* const* sources, void* shared, const void* next,
                       std::size_t count);

// REQUIRES Supports(dtype, reduce).
Trade TradeFor(std::int32_t dtype, std::int32_t reduce, Stores stores = Stores::kCached);

// out[i] = in[i] * factor; in == out is allowed. REQUIRES a floating or complex dtype.
void Scale(void* out, const void* in, std::size_t count, std::int32_t dtype, double factor);

// Between 16-bit floating types and float32, so that partial sums can travel without rounding.
// REQUIRES DTRUN_FLOAT16 or DTRUN_BFLOAT16.
void Widen(float* out, const void* in, std::size_t count, std::int32_t dtype);
void Narrow(void* out, const float* in, std::size_t count, std::int32_t dtype);

// memcpy with streaming stores. No overlap.
void StreamingCopy(void* out, const void* in, std::size_t bytes);

}  // namespace dtrun::kernels

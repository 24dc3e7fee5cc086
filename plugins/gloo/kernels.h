// Combining the buffers of several ranks, element by element.
//
// Sources are combined in the order given, so a result does not depend on how a buffer was
// cut or which algorithm carried it. float16 and bfloat16 are widened to float32, combined
// there and rounded once (to nearest, ties to even); integer sums and products wrap.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrun::gloo_plugin {

// Writes to `out` the reduction of `source_count` >= 1 buffers of `count` elements. `out`
// may be one of the sources.
using ReduceKernel = void (*)(void* out, const void* const* sources, int source_count, std::size_t count);

// REQUIRES: dtype and reduce are values of types.h; DTRUN_AVG only with a floating type.
ReduceKernel KernelFor(std::int32_t dtype, std::int32_t reduce);

// Bytes of one element; 0 for an unknown type.
std::size_t ElementBytes(std::int32_t dtype);
bool IsFloating(std::int32_t dtype);

}  // namespace dtrun::gloo_plugin

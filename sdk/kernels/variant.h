// The kernels of one instruction set, as a table. Each variant is compiled in a file of its own, with the
// compiler's flags for that set, and runs only on processors that have it.
//
// Internal to this library. Constant; any thread.
#pragma once

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::kernels {

// What combines elements of one type in one way, by Stores; null where the two have no meaning together.
struct Kernels {
  Reduce reduce[2];
  Trade trade[2];
};

struct Variant {
  const char* name;
  Kernels combine[sdk::kTypeEnd][sdk::kReductionEnd];
  void (*scale[sdk::kTypeEnd])(void* out, const void* in, std::size_t count, double factor);
  void (*widen[2])(float* out, const void* in, std::size_t count);   // float16, bfloat16
  void (*narrow[2])(void* out, const float* in, std::size_t count);  // float16, bfloat16
  void (*streaming_copy)(void* out, const void* in, std::size_t bytes);
};

extern const Variant kBaseline;
extern const Variant kAvx2;    // AVX2 and F16C
extern const Variant kAvx512;  // AVX-512 F, BW, DQ, VL and VBMI2

// Those that this processor runs, best first; `count` receives how many.
const Variant* const* UsableVariants(int* count);

}  // namespace dtrun::kernels

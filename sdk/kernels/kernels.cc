// Chooses the variant for this processor, once.
#include "dtrun/kernels.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "variant.h"

#if defined(DTRUN_KERNELS_X86)
#include <cpuid.h>
#endif

namespace dtrun::kernels {
namespace {

struct Usable {
  const Variant* variants[3] = {};
  int count = 0;

  Usable() {
#if defined(DTRUN_KERNELS_X86)
    // These ask the operating system too, which must save the wide registers.
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi2")) {
      variants[count++] = &kAvx512;
    }
    if (__builtin_cpu_supports("avx2") && HasF16c()) variants[count++] = &kAvx2;
#endif
    variants[count++] = &kBaseline;
  }

#if defined(DTRUN_KERNELS_X86)
  // Not every compiler's __builtin_cpu_supports knows this one.
  static bool HasF16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }
#endif
};

const Usable& ThisProcessor() {
  static const Usable usable;
  return usable;
}

const Variant& Best() { return *ThisProcessor().variants[0]; }

}  // namespace

const Variant* const* UsableVariants(int* count) {
  *count = ThisProcessor().count;
  return ThisProcessor().variants;
}

bool Supports(std::int32_t dtype, std::int32_t reduce) {
  return dtype > 0 && dtype < sdk::kTypeEnd && reduce > 0 && reduce < sdk::kReductionEnd &&
         kBaseline.combine[dtype][reduce].reduce[0] != nullptr;
}

Reduce ReduceFor(std::int32_t dtype, std::int32_t reduce, Stores stores) {
  return Best().combine[dtype][reduce].reduce[stores == Stores::kStreaming ? 1 : 0];
}

Trade TradeFor(std::int32_t dtype, std::int32_t reduce, Stores stores) {
  return Best().combine[dtype][reduce].trade[stores == Stores::kStreaming ? 1 : 0];
}

void Scale(void* out, const void* in, std::size_t count, std::int32_t dtype, double factor) {
  Best().scale[dtype](out, in, count, factor);
}

void Widen(float* out, const void* in, std::size_t count, std::int32_t dtype) {
  Best().widen[dtype == DTRUN_FLOAT16 ? 0 : 1](out, in, count);
}

void Narrow(void* out, const float* in, std::size_t count, std::int32_t dtype) {
  Best().narrow[dtype == DTRUN_FLOAT16 ? 0 : 1](out, in, count);
}

void Fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

void StreamingCopy(void* out, const void* in, std::size_t bytes) { Best().streaming_copy(out, in, bytes); }

}  // namespace dtrun::kernels

// What every processor of this architecture runs; on x86-64 that is SSE2.
#include <cstddef>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace dtrun::kernels {
namespace {
constexpr std::size_t kVectorBytes = 16;
}  // namespace
}  // namespace dtrun::kernels

#include "vector.h"

namespace dtrun::kernels {
namespace {

using Half = SoftwareHalf;

[[gnu::always_inline]] inline Words LoadPart(const void* from, std::size_t bytes) {
  return LoadPartBytes(from, bytes);
}
[[gnu::always_inline]] inline void StorePart(void* to, Words raw, std::size_t bytes) {
  StorePartBytes(to, raw, bytes);
}
#if defined(__SSE2__)
[[gnu::always_inline]] inline void StreamVector(void* to, Words raw) {
  _mm_stream_si128(static_cast<__m128i*>(to), __builtin_bit_cast(__m128i, raw));
}
inline void StreamFence() { _mm_sfence(); }
#else
[[gnu::always_inline]] inline void StreamVector(void* to, Words raw) { StoreVector(to, raw); }
inline void StreamFence() {}
#endif

}  // namespace
}  // namespace dtrun::kernels

#include "table.h"

namespace dtrun::kernels {

constinit const Variant kBaseline = MakeVariant("baseline");

}  // namespace dtrun::kernels

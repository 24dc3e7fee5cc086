// Processors with AVX2 and F16C.
#include <immintrin.h>

#include <cstddef>

namespace dtrun::kernels {
namespace {
constexpr std::size_t kVectorBytes = 32;
}  // namespace
}  // namespace dtrun::kernels

#include "vector.h"

namespace dtrun::kernels {
namespace {

struct Half {
  using Element = std::uint16_t;
  using Lane = float;
  using Wide = FloatPair;
  [[gnu::always_inline]] static Wide Load(Words raw) {
    const auto halves = __builtin_bit_cast(__m256i, raw);
    return {__builtin_bit_cast(Floats, _mm256_cvtph_ps(_mm256_castsi256_si128(halves))),
            __builtin_bit_cast(Floats, _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)))};
  }
  [[gnu::always_inline]] static Words Pack(Wide wide) {
    return __builtin_bit_cast(
        Words, _mm256_inserti128_si256(_mm256_castsi128_si256(Rounded(wide.low)), Rounded(wide.high), 1));
  }
  [[gnu::always_inline]] static Floats Widen(Shorts narrow) {
    return __builtin_bit_cast(Floats, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, narrow)));
  }
  [[gnu::always_inline]] static Shorts Narrow(Floats wide) {
    return __builtin_bit_cast(Shorts, Rounded(wide));
  }

 private:
  [[gnu::always_inline]] static __m128i Rounded(Floats wide) {
    return _mm256_cvtps_ph(__builtin_bit_cast(__m256, wide), _MM_FROUND_TO_NEAREST_INT);
  }
};

[[gnu::always_inline]] inline Words LoadPart(const void* from, std::size_t bytes) {
  return LoadPartBytes(from, bytes);
}
[[gnu::always_inline]] inline void StorePart(void* to, Words raw, std::size_t bytes) {
  StorePartBytes(to, raw, bytes);
}
[[gnu::always_inline]] inline void StreamVector(void* to, Words raw) {
  _mm256_stream_si256(static_cast<__m256i*>(to), __builtin_bit_cast(__m256i, raw));
}
inline void StreamFence() { _mm_sfence(); }

}  // namespace
}  // namespace dtrun::kernels

#include "table.h"

namespace dtrun::kernels {

constinit const Variant kAvx2 = MakeVariant("avx2");

}  // namespace dtrun::kernels

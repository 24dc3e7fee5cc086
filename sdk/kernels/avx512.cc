// Processors with AVX-512 as of Ice Lake and Zen 4: older ones slow their clock down for it.
#include <immintrin.h>

#include <cstddef>

namespace dtrun::kernels {
namespace {
constexpr std::size_t kVectorBytes = 64;
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
    const auto halves = __builtin_bit_cast(__m512i, raw);
    return {__builtin_bit_cast(Floats, _mm512_cvtph_ps(_mm512_castsi512_si256(halves))),
            __builtin_bit_cast(Floats, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)))};
  }
  [[gnu::always_inline]] static Words Pack(Wide wide) {
    return __builtin_bit_cast(
        Words, _mm512_inserti64x4(_mm512_castsi256_si512(Rounded(wide.low)), Rounded(wide.high), 1));
  }
  [[gnu::always_inline]] static Floats Widen(Shorts narrow) {
    return __builtin_bit_cast(Floats, _mm512_cvtph_ps(__builtin_bit_cast(__m256i, narrow)));
  }
  [[gnu::always_inline]] static Shorts Narrow(Floats wide) {
    return __builtin_bit_cast(Shorts, Rounded(wide));
  }

 private:
  [[gnu::always_inline]] static __m256i Rounded(Floats wide) {
    return _mm512_cvtps_ph(__builtin_bit_cast(__m512, wide), _MM_FROUND_TO_NEAREST_INT);
  }
};

[[gnu::always_inline]] inline __mmask64 FirstBytes(std::size_t bytes) {
  return (__mmask64{1} << bytes) - 1;  // fewer than 64
}
[[gnu::always_inline]] inline Words LoadPart(const void* from, std::size_t bytes) {
  return __builtin_bit_cast(Words, _mm512_maskz_loadu_epi8(FirstBytes(bytes), from));
}
[[gnu::always_inline]] inline void StorePart(void* to, Words raw, std::size_t bytes) {
  _mm512_mask_storeu_epi8(to, FirstBytes(bytes), __builtin_bit_cast(__m512i, raw));
}
[[gnu::always_inline]] inline void StreamVector(void* to, Words raw) {
  _mm512_stream_si512(static_cast<__m512i*>(to), __builtin_bit_cast(__m512i, raw));
}
inline void StreamFence() { _mm_sfence(); }

}  // namespace
}  // namespace dtrun::kernels

#include "table.h"

namespace dtrun::kernels {

constinit const Variant kAvx512 = MakeVariant("avx512");

}  // namespace dtrun::kernels

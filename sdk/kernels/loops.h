// The loops over whole buffers. Included by each variant after it has defined LoadPart, StorePart (less than
// a vector) and StreamVector (past the cache, to an aligned address).
//
// Positions are bytes: element i of every buffer lies at the same offset. All sources of a vector are read
// before it is written, so `out` may be one of them.
// Any thread: nothing is kept between calls.
#pragma once

#include "operations.h"

namespace dtrun::kernels {
namespace {

inline constexpr std::size_t kUnroll = 4;  // vectors per round
// Vectors of one source that are combined before the next source is looked at; their lanes stay in the
// first-level cache.
inline constexpr std::size_t kBlock = 4096 / kVectorBytes;

inline const unsigned char* At(const void* base, std::size_t offset) {
  return static_cast<const unsigned char*>(base) + offset;
}
inline unsigned char* At(void* base, std::size_t offset) {
  return static_cast<unsigned char*>(base) + offset;
}

template <bool kStreaming>
[[gnu::always_inline]] inline void Put(unsigned char* to, Words raw) {
  if constexpr (kStreaming) {
    StreamVector(to, raw);
  } else {
    StoreVector(to, raw);
  }
}

// Bytes before the first address of `out` that StreamVector takes.
inline std::size_t BytesToAlignment(const void* out, std::size_t bytes) {
  const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(out)) % kVectorBytes;
  return head < bytes ? head : bytes;
}

// Less than a vector, of any number of sources.
template <class Type, class Operation, class Finish>
void ReducePart(void* out, const void* const* sources, int source_count, std::size_t at, std::size_t bytes,
                const Finish& finish) {
  auto wide = Type::Load(LoadPart(At(sources[0], at), bytes));
  for (int s = 1; s < source_count; ++s) {
    wide = Combine<Operation>(wide, Type::Load(LoadPart(At(sources[s], at), bytes)));
  }
  StorePart(At(out, at), Type::Pack(finish(wide)), bytes);
}

// kSources buffers, combined in registers.
template <class Type, class Operation, class Finish, bool kStreaming, int kSources>
std::size_t ReduceFew(void* out, const void* const* sources, std::size_t at, std::size_t bytes,
                      const Finish& finish) {
  const unsigned char* from[kSources];
  for (int s = 0; s < kSources; ++s) from[s] = static_cast<const unsigned char*>(sources[s]);
  constexpr std::size_t kRound = kUnroll * kVectorBytes;
  for (; bytes - at >= kRound; at += kRound) {
    Words result[kUnroll];
    for (std::size_t v = 0; v < kUnroll; ++v) {
      const std::size_t offset = at + v * kVectorBytes;
      auto wide = Type::Load(LoadVector<Words>(from[0] + offset));
      for (int s = 1; s < kSources; ++s) {
        wide = Combine<Operation>(wide, Type::Load(LoadVector<Words>(from[s] + offset)));
      }
      result[v] = Type::Pack(finish(wide));
    }
    for (std::size_t v = 0; v < kUnroll; ++v) Put<kStreaming>(At(out, at + v * kVectorBytes), result[v]);
  }
  return at;
}

// Any number of buffers, by blocks. Takes whole vectors and returns where it stopped.
template <class Type, class Operation, class Finish, bool kStreaming>
std::size_t ReduceMany(void* out, const void* const* sources, int source_count, std::size_t at,
                       std::size_t bytes, const Finish& finish) {
  typename Type::Wide wide[kBlock];
  while (bytes - at >= kVectorBytes) {
    const std::size_t whole = (bytes - at) / kVectorBytes;
    const std::size_t vectors = whole < kBlock ? whole : kBlock;
    const unsigned char* from = At(sources[0], at);
    for (std::size_t v = 0; v < vectors; ++v) {
      wide[v] = Type::Load(LoadVector<Words>(from + v * kVectorBytes));
    }
    for (int s = 1; s < source_count; ++s) {
      from = At(sources[s], at);
      for (std::size_t v = 0; v < vectors; ++v) {
        wide[v] = Combine<Operation>(wide[v], Type::Load(LoadVector<Words>(from + v * kVectorBytes)));
      }
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      Put<kStreaming>(At(out, at + v * kVectorBytes), Type::Pack(finish(wide[v])));
    }
    at += vectors * kVectorBytes;
  }
  return at;
}

// kElements lanes make one element: 2 for the parts of a complex number.
template <class Type, class Operation, class Finish, bool kStreaming, bool kHot, std::size_t kElements = 1>
void ReduceLoop(void* out, const void* const* sources, int source_count, std::size_t count) {
  const std::size_t bytes = count * kElements * sizeof(typename Type::Element);
  const Finish finish(source_count);
  std::size_t at = 0;
  if constexpr (kStreaming) {
    at = BytesToAlignment(out, bytes);
    if (at > 0) ReducePart<Type, Operation>(out, sources, source_count, 0, at, finish);
  }
  if constexpr (kHot) {
    switch (source_count) {
      case 2: at = ReduceFew<Type, Operation, Finish, kStreaming, 2>(out, sources, at, bytes, finish); break;
      case 3: at = ReduceFew<Type, Operation, Finish, kStreaming, 3>(out, sources, at, bytes, finish); break;
      case 4: at = ReduceFew<Type, Operation, Finish, kStreaming, 4>(out, sources, at, bytes, finish); break;
      default: break;
    }
  }
  at = ReduceMany<Type, Operation, Finish, kStreaming>(out, sources, source_count, at, bytes, finish);
  if (at < bytes) ReducePart<Type, Operation>(out, sources, source_count, at, bytes - at, finish);
}

// Two sources, one of which gets new contents as soon as it has been read.
template <class Type, class Operation, class Finish, bool kStreaming, std::size_t kElements = 1>
void TradeLoop(void* out, const void* const* sources, void* shared, const void* next, std::size_t count) {
  const std::size_t bytes = count * kElements * sizeof(typename Type::Element);
  const Finish finish(2);
  std::size_t at = 0;
  if constexpr (kStreaming) {
    at = BytesToAlignment(out, bytes);
    if (at > 0) {
      ReducePart<Type, Operation>(out, sources, 2, 0, at, finish);
      __builtin_memcpy(shared, next, at);
    }
  }
  constexpr std::size_t kRound = kUnroll * kVectorBytes;
  for (; bytes - at >= kRound; at += kRound) {
    Words result[kUnroll];
    for (std::size_t v = 0; v < kUnroll; ++v) {
      const std::size_t offset = at + v * kVectorBytes;
      const auto first = Type::Load(LoadVector<Words>(At(sources[0], offset)));
      const auto second = Type::Load(LoadVector<Words>(At(sources[1], offset)));
      result[v] = Type::Pack(finish(Combine<Operation>(first, second)));
    }
    for (std::size_t v = 0; v < kUnroll; ++v) Put<kStreaming>(At(out, at + v * kVectorBytes), result[v]);
    for (std::size_t v = 0; v < kUnroll; ++v) {
      StoreVector(At(shared, at + v * kVectorBytes), LoadVector<Words>(At(next, at + v * kVectorBytes)));
    }
  }
  const std::size_t whole = at + (bytes - at) / kVectorBytes * kVectorBytes;
  ReduceMany<Type, Operation, Finish, kStreaming>(out, sources, 2, at, whole, finish);
  if (whole < bytes) ReducePart<Type, Operation>(out, sources, 2, whole, bytes - whole, finish);
  if (at < bytes) __builtin_memcpy(At(shared, at), At(next, at), bytes - at);
}

// The product of complex numbers, one at a time: not a hot loop. Not to be specialised: for a known
// number of sources gcc 12 makes fused multiply-adds of it in spite of -ffp-contract=off.
template <class T>
#ifdef __clang__
[[gnu::noinline]]
#else
[[gnu::noipa]]
#endif
void ComplexProduct(void* out, const void* const* sources, int source_count,
                                   std::size_t count) {
  struct Complex {
    T real;
    T imaginary;
  };
  for (std::size_t i = 0; i < count; ++i) {
    Complex product = static_cast<const Complex*>(sources[0])[i];
    for (int s = 1; s < source_count; ++s) {
      const Complex next = static_cast<const Complex*>(sources[s])[i];
      product = {product.real * next.real - product.imaginary * next.imaginary,
                 product.real * next.imaginary + product.imaginary * next.real};
    }
    static_cast<Complex*>(out)[i] = product;
  }
}
template <class T>
void ComplexProductTrade(void* out, const void* const* sources, void* shared, const void* next,
                         std::size_t count) {
  ComplexProduct<T>(out, sources, 2, count);
  __builtin_memcpy(shared, next, count * 2 * sizeof(T));
}

template <class Type, std::size_t kElements = 1>
void ScaleLoop(void* out, const void* in, std::size_t count, double factor) {
  const std::size_t bytes = count * kElements * sizeof(typename Type::Element);
  const Multiply<typename Type::Lane> multiply(factor);
  std::size_t at = 0;
  for (; bytes - at >= kVectorBytes; at += kVectorBytes) {
    StoreVector(At(out, at), Type::Pack(multiply(Type::Load(LoadVector<Words>(At(in, at))))));
  }
  if (at < bytes) {
    StorePart(At(out, at), Type::Pack(multiply(Type::Load(LoadPart(At(in, at), bytes - at)))), bytes - at);
  }
}

inline constexpr std::size_t kFloats = kVectorBytes / sizeof(float);

template <class Type>
void WidenLoop(float* out, const void* in, std::size_t count) {
  std::size_t i = 0;
  for (; count - i >= kFloats; i += kFloats) {
    StoreVector(out + i, Type::Widen(LoadVector<Shorts>(At(in, i * sizeof(std::uint16_t)))));
  }
  Shorts rest = {};
  __builtin_memcpy(&rest, At(in, i * sizeof(std::uint16_t)), (count - i) * sizeof(std::uint16_t));
  const Floats wide = Type::Widen(rest);
  __builtin_memcpy(out + i, &wide, (count - i) * sizeof(float));
}

template <class Type>
void NarrowLoop(void* out, const float* in, std::size_t count) {
  std::size_t i = 0;
  for (; count - i >= kFloats; i += kFloats) {
    StoreVector(At(out, i * sizeof(std::uint16_t)), Type::Narrow(LoadVector<Floats>(in + i)));
  }
  Floats rest = {};
  __builtin_memcpy(&rest, in + i, (count - i) * sizeof(float));
  const Shorts narrow = Type::Narrow(rest);
  __builtin_memcpy(At(out, i * sizeof(std::uint16_t)), &narrow, (count - i) * sizeof(std::uint16_t));
}

inline void StreamingCopyLoop(void* out, const void* in, std::size_t bytes) {
  std::size_t at = BytesToAlignment(out, bytes);
  if (at > 0) StorePart(out, LoadPart(in, at), at);
  for (; bytes - at >= kUnroll * kVectorBytes; at += kUnroll * kVectorBytes) {
    Words raw[kUnroll];
    for (std::size_t v = 0; v < kUnroll; ++v) raw[v] = LoadVector<Words>(At(in, at + v * kVectorBytes));
    for (std::size_t v = 0; v < kUnroll; ++v) StreamVector(At(out, at + v * kVectorBytes), raw[v]);
  }
  for (; bytes - at >= kVectorBytes; at += kVectorBytes) {
    StreamVector(At(out, at), LoadVector<Words>(At(in, at)));
  }
  if (at < bytes) StorePart(At(out, at), LoadPart(At(in, at), bytes - at), bytes - at);
}

}  // namespace
}  // namespace dtrun::kernels

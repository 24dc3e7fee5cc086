// A message of any kind that a variant has, as a fuzzer's bytes choose: which kinds there are is read from
// the variant, so that none can be forgotten.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "tests/fuzz/source.h"

namespace dtrun::fuzz {

// Says which kind is wanted.
template <class T>
struct A {};

template <class Messages, std::size_t kIndex, class Make>
Messages MakeKind(const Make& make) {
  return make(A<std::variant_alternative_t<kIndex, Messages>>());
}

template <class Messages, class Make, std::size_t... kIndices>
Messages MakeChosen(std::size_t chosen, const Make& make, std::index_sequence<kIndices...>) {
  using Maker = Messages (*)(const Make&);
  static constexpr Maker kMakers[] = {&MakeKind<Messages, kIndices, Make>...};
  return kMakers[chosen](make);
}

// `make` has operator()(A<T>) for every T of the variant: a new message does not compile until there is one.
template <class Messages, class Make>
Messages AnyOf(Source& in, const Make& make) {
  constexpr std::size_t kKinds = std::variant_size_v<Messages>;
  return MakeChosen<Messages>(in.Below(kKinds), make, std::make_index_sequence<kKinds>());
}

}  // namespace dtrun::fuzz

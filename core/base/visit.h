// std::visit for one variant that is never empty, by comparing its index. Any thread.
//
// libstdc++ builds a function table for each call of std::visit; without it the message files compile a tenth
// faster.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace dtrun {

template <std::size_t kIndex = 0, class Visitor, class Variant>
decltype(auto) Visit(Visitor&& visitor, Variant&& variant) {
  constexpr std::size_t kSize = std::variant_size_v<std::remove_cvref_t<Variant>>;
  if constexpr (kIndex + 1 < kSize) {
    if (variant.index() != kIndex)
      return Visit<kIndex + 1>(std::forward<Visitor>(visitor), std::forward<Variant>(variant));
  }
  return std::forward<Visitor>(visitor)(std::get<kIndex>(std::forward<Variant>(variant)));
}

}  // namespace dtrun

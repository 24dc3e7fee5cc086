// Numbers in text, read by the rules of std::from_chars: no sign '+', no blanks, no prefix. Pure; any thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace dtrun {

// The number at the beginning of `*text`, which then begins behind it. Empty, and `*text` as it was, when
// there is none or it does not fit. `base`: of whole numbers.
template <class Number, class... Base>
std::optional<Number> TakeNumber(std::string_view* text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number, base...);
  if (error != std::errc{}) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

// `text` as a whole. Empty when it is not one number, or does not fit.
template <class Number, class... Base>
std::optional<Number> NumberOf(std::string_view text, Base... base) {
  const std::optional<Number> number = TakeNumber<Number>(&text, base...);
  return text.empty() ? number : std::nullopt;
}

}  // namespace dtrun

// Parses numbers by the rules of std::from_chars: no sign '+', no blanks, no prefix. Pure; any thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace dtrun {

// Parses the number at the start of `*text` and removes it from there. Returns nullopt and leaves `*text`
// unchanged if there is no number or it does not fit. `base` applies to integers.
template <class Number, class... Base>
std::optional<Number> TakeNumber(std::string_view* text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number, base...);
  if (error != std::errc{}) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

// Parses all of `text`. nullopt if it is not exactly one number, or does not fit.
template <class Number, class... Base>
std::optional<Number> NumberOf(std::string_view text, Base... base) {
  const std::optional<Number> number = TakeNumber<Number>(&text, base...);
  return text.empty() ? number : std::nullopt;
}

}  // namespace dtrun

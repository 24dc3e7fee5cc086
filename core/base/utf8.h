// UTF-8 characters in text that may be invalid. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrun {

// Whether the byte continues a character.
constexpr bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The size in bytes of a character with this first byte; 1 if the byte cannot start a character.
constexpr std::size_t CharacterSize(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  return 1;
}

struct Character {
  std::size_t size = 0;  // in bytes; 0: invalid
  char32_t code = 0;
};

// Truncated and overlong sequences, surrogates and code points above U+10FFFF are invalid.
// REQUIRES: not empty
constexpr Character FirstCharacter(std::string_view text) {
  const std::size_t size = CharacterSize(text[0]);
  const auto first = static_cast<unsigned char>(text[0]);
  if (size == 1) return first < 0x80 ? Character{1, first} : Character{};
  if (text.size() < size) return {};
  char32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  constexpr char32_t kSmallest[] = {0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[size - 2] || surrogate || code > 0x10ffff) return {};
  return {size, code};
}

// The longest prefix of `text` within `most` bytes that does not cut a character.
constexpr std::string_view PrefixWithin(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && IsContinuation(text[most])) --most;
  return text.substr(0, most);
}

// The same, with "..." appended if the text was cut.
inline std::string Shortened(std::string_view text, std::size_t most) {
  const std::string_view shown = PrefixWithin(text, most);
  return shown.size() == text.size() ? std::string(text) : std::string(shown) + "...";
}

}  // namespace dtrun

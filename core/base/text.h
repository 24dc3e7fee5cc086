// Characters, pieces and lines of text. Letters and white space are ASCII whatever the locale; other UTF-8 is
// left unchanged. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }
constexpr bool IsWhiteSpace(char c) { return kWhiteSpace.find(c) != kWhiteSpace.npos; }
constexpr char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char ToUpper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Not empty and only digits.
constexpr bool IsDigits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

// Hexadecimal with lower-case letters, as in digests and keys.
constexpr bool IsLowerHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos && !text.empty();
}

// The part after the last '/'; the whole path if it has none.
constexpr std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Removes white space at both ends.
constexpr std::string_view Trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

std::string Lowercase(std::string_view text);

// Adds `indent` before every line but the first.
std::string Indented(std::string_view text, std::string_view indent);

// `text` with each `what`, which is not empty, replaced.
std::string ReplaceAll(std::string text, std::string_view what, std::string_view with);

// The pieces between separators, including empty ones: one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);

// The lines, without line feeds; the last line may lack one. None for an empty text.
std::vector<std::string_view> LinesOf(std::string_view text);

// Makes untrusted text one line that is safe to print on a terminal. Pure; any thread.

// Escapes control characters and bidirectional controls as "\n" or "\u001b"; all other text is unchanged.
std::string Printable(std::string_view text);

// UTF-8 characters in text that may be invalid. Pure; any thread.

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

// Finds the nearest name, for "did you mean". Pure functions; any thread.

// Levenshtein distance in bytes, case ignored, with a swap of neighbours counted as one
// edit (optimal string alignment).
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name` if it is a likely typo (distance at most 3 and less than half of the longer
// name); ties go to the earlier candidate. Otherwise the only candidate that `name` abbreviates.
std::optional<std::string> Nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dtrun

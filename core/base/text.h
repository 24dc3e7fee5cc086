// Characters, pieces and lines of text. Letters and white space are ASCII whatever the locale; other UTF-8 is
// left unchanged. Pure; any thread.
#pragma once

#include <algorithm>
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

// The pieces between separators, including empty ones: one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);

// The lines, without line feeds; the last line may lack one. None for an empty text.
std::vector<std::string_view> LinesOf(std::string_view text);

}  // namespace dtrun

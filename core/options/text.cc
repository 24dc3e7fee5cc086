#include "core/options/text.h"

#include <fmt/format.h>

namespace dtrun::options {
namespace {

constexpr std::size_t kShown = 60;

// Bytes of the valid UTF-8 character that starts at `at`, or 0.
std::size_t CharacterSize(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xc2 && first <= 0xdf   ? 2
                           : first >= 0xe0 && first <= 0xef ? 3
                           : first >= 0xf0 && first <= 0xf4 ? 4
                                                            : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  if (first == 0xe0 && second < 0xa0) return 0;  // overlong
  if (first == 0xed && second > 0x9f) return 0;  // surrogate
  if (first == 0xf0 && second < 0x90) return 0;  // overlong
  if (first == 0xf4 && second > 0x8f) return 0;  // beyond U+10FFFF
  return size;
}

}  // namespace

std::size_t FindInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = CharacterSize(text, at);
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = CharacterSize(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    if (size == 0) {
      out += fmt::format("\\x{:02x}", first);
    } else if (first == '"' || first == '\\') {
      out += {'\\', text[at]};
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\t') {
      out += "\\t";
    } else if (first < 0x20 || first == 0x7f) {
      out += fmt::format("\\u{:04x}", first);
    } else {
      out += text.substr(at, size);
    }
    at += size == 0 ? 1 : size;
  }
  return out + '"';
}

std::string QuoteShort(std::string_view text) {
  if (text.size() <= kShown) return Quote(text);
  std::size_t size = kShown;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return Quote(text.substr(0, size)) + "...";
}

}  // namespace dtrun::options

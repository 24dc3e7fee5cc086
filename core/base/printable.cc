#include "core/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/base/utf8.h"

namespace dtrun {
namespace {

// Control characters, and those that change the direction or line of the following text.
constexpr bool IsObeyed(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool mark = code == 0x61c || code == 0x200e || code == 0x200f;
  return control || mark || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    const std::size_t size = std::max<std::size_t>(first.size, 1);
    if (text[0] == '\n') {
      out += "\\n";
    } else if (first.size > 0 && IsObeyed(first.code)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(first.code));
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace dtrun

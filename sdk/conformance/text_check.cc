#include "text_check.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace dtrun::conformance {
namespace {

std::string Problem(const std::string& text) {
  if (!IsUtf8(text)) return "is no UTF-8";
  const auto control = [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; };
  return std::any_of(text.begin(), text.end(), control) ? "has control characters" : "";
}

}  // namespace

// As Unicode defines it: no surrogates, nothing longer than it must be, nothing above U+10FFFF.
bool IsUtf8(const std::string& text) {
  constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = first < 0x80             ? 0
                     : (first & 0xe0) == 0xc0 ? 1
                     : (first & 0xf0) == 0xe0 ? 2
                     : (first & 0xf8) == 0xf0 ? 3
                                              : -1;
    if (more < 0) return false;
    std::uint32_t value = more == 0 ? first : first & (0x3fu >> more);
    for (int j = 0; j < more; ++j) {
      if (++i == text.size() || (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return false;
      value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    }
    if (value < kLeast[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
  }
  return true;
}

std::string TextProblem(const char* text, bool optional) {
  if (text == nullptr) return optional ? "" : "is NULL";
  return Problem(text);
}

std::string TextProblem(dtrun_string text) {
  if (text.data == nullptr) return text.size == 0 ? "" : "has bytes and no data";
  if (text.data[text.size] != '\0') return "has no NUL behind its " + std::to_string(text.size) + " bytes";
  return Problem(std::string(text.data, text.size));
}

}  // namespace dtrun::conformance

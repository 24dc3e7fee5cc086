#include "core/options/text.h"

#include <fmt/format.h>

#include "core/base/printable.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace dtrun::options {
namespace {

constexpr std::size_t kShown = 60;

// 0 if no valid character starts there.
std::size_t SizeAt(std::string_view text, std::size_t at) { return FirstCharacter(text.substr(at)).size; }

}  // namespace

std::size_t FindInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = SizeAt(text, at);
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = SizeAt(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    if (size == 0) {
      out += fmt::format("\\x{:02x}", first);
    } else if (first == '"' || first == '\\') {
      out += {'\\', text[at]};
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\t') {
      out += "\\t";
    } else {
      out += Printable(text.substr(at, size));
    }
    at += size == 0 ? 1 : size;
  }
  return out + '"';
}

std::string QuoteShort(std::string_view text) {
  const std::string shown = MaskText(text);
  if (shown.size() <= kShown) return Quote(shown);
  return Quote(PrefixWithin(shown, kShown)) + "...";
}

std::string BooleanMeant(std::string_view word) {
  const std::string lower = Lowercase(word);
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") return "true";
  if (lower == "false" || lower == "no" || lower == "off" || lower == "0") return "false";
  return {};
}

}  // namespace dtrun::options

#include "core/base/text.h"

namespace dtrun {

std::string Lowercase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ToLower);
  return out;
}

std::string Indented(std::string_view text, std::string_view indent) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t at; (at = text.find(separator)) != text.npos; text.remove_prefix(at + 1)) {
    pieces.push_back(text.substr(0, at));
  }
  pieces.push_back(text);
  return pieces;
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  if (text.ends_with('\n'))
    text.remove_suffix(1);
  else if (text.empty())
    return {};
  return Split(text, '\n');
}

}  // namespace dtrun

#include "core/base/secret_value.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/text.h"

namespace dtrun {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool IsBlankLetter(char c) { return c == ' ' || c == '\t'; }
bool IsQuoteLetter(char c) { return c == '"' || c == '\''; }
bool EndsBareValue(char c) { return IsWhiteSpace(c) || IsQuoteLetter(c) || c == ';' || c == '&' || c == ','; }

class ValueReader {
 public:
  ValueReader(std::string_view text, std::size_t begin, std::size_t size)
      : text_(text), begin_(begin), at_(begin + size), name_(Lowercase(text.substr(begin, size))) {}

  std::optional<NamedValue> Read() {
    if (!ReadSign()) return {};
    value_.begin = at_;
    if (!(Quoted() || Bracketed('[', ']') || Bracketed('{', '}'))) Bare();
    value_.size = std::min(value_.size, text_.size() - value_.begin);
    if (value_.size == 0) return {};
    return value_;
  }

 private:
  char Letter(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  template <class Is>
  std::size_t Span(std::size_t from, Is is) const {
    std::size_t end = from;
    while (end < text_.size() && is(text_[end])) ++end;
    return end - from;
  }
  // A quote, or a backslash and a quote as in JSON inside a string.
  std::size_t QuoteAt(std::size_t at) const {
    if (IsQuoteLetter(Letter(at))) return 1;
    return Letter(at) == '\\' && IsQuoteLetter(Letter(at + 1)) ? 2 : 0;
  }
  bool BeginsLine() const {
    std::size_t before = begin_;
    while (before > 0 && IsBlankLetter(text_[before - 1])) --before;
    return before == 0 || text_[before - 1] == '\n';
  }

  bool ReadSign() {
    const std::size_t behind = at_;
    while (const std::size_t quote = QuoteAt(at_)) at_ += quote;
    const bool quoted = at_ != behind;
    const std::size_t blanks = Span(at_, IsBlankLetter);
    value_.spaced = blanks > 0;
    const char sign = Letter(at_ + blanks), next = Letter(at_ + blanks + 1);
    const bool compares = sign == '=' && next == '=' && blanks > 0;
    if (compares) return false;
    if (sign == '=' || (sign == ':' && (quoted || blanks == 0 || next == '='))) {
      const bool two = (sign == '=' && next == '>') || (sign == ':' && next == '=');  // => and :=
      value_.sign = two ? '=' : sign;
      at_ += blanks + (two ? 2 : 1);
      const std::size_t more = Span(at_, IsBlankLetter);
      // Skips the blank, but not in "PASSWORD= command".
      if (value_.sign == ':' || value_.spaced || two || QuoteAt(at_ + more) != 0) at_ += more;
      return true;
    }
    const bool option = name_.size() > 2 && name_[0] == '-';
    if (!option || blanks == 0) return false;
    value_ = {.sign = ' '};
    at_ += blanks;
    return true;
  }

  bool Quoted() {
    const std::size_t quote = QuoteAt(at_);
    if (quote == 0) return false;
    value_.quoted = true;
    const std::string_view one = text_.substr(at_, quote);
    const std::string three(3, one[0]);
    const bool triple = quote == 1 && text_.substr(at_).starts_with(three);
    value_.begin = at_ + (triple ? 3 : quote);
    std::size_t end = text_.find(triple ? std::string_view(three) : one, value_.begin);
    const bool escapes = quote == 1 && one[0] == '"' && !triple;
    while (escapes && end != kNone && end > value_.begin && IsEscaped(end)) end = text_.find('"', end + 1);
    value_.size = std::min(end, text_.size()) - value_.begin;
    return true;
  }

  // Preceded by an odd number of backslashes.
  bool IsEscaped(std::size_t at) const {
    std::size_t first = at;
    while (first > value_.begin && text_[first - 1] == '\\') --first;
    return (at - first) % 2 == 1;
  }

  // A list, a table, or a value in ODBC braces.
  bool Bracketed(char opening, char closing) {
    if (value_.sign == ' ' || Letter(at_) != opening) return false;
    const std::size_t end = text_.find(closing, at_);
    if (end == kNone) return false;
    value_.size = end + 1 - at_;
    return true;
  }

  void Bare() {
    const bool header = value_.sign == ':';
    const bool cookie = header && name_.ends_with("cookie");
    const bool line = value_.spaced && value_.sign == '=' && BeginsLine();  // file line: name = a value
    if (line) {
      value_.size = Span(at_, [](char c) { return c != '\n' && c != '\r'; });
      return;
    }
    const auto in_header = [](char c) { return !IsQuoteLetter(c) && c != '\n' && c != '\r'; };
    const auto in_word = [](char c) { return !EndsBareValue(c); };
    value_.size = cookie ? Span(at_, in_header) : Span(at_, in_word);
    if (cookie || !name_.ends_with("authorization")) return;
    constexpr std::array<std::string_view, 5> kSchemes = {"bearer", "basic", "token", "apikey", "negotiate"};
    const std::string scheme = Lowercase(text_.substr(at_, value_.size));
    if (scheme == "digest" || scheme.starts_with("aws4-")) {  // has quoted parts
      value_.size = Span(at_, [](char c) { return c != '\n' && c != '\r'; });
    } else if (std::ranges::find(kSchemes, scheme) != kSchemes.end()) {
      value_.size += 1 + Span(at_ + value_.size + 1, in_word);
    }
  }

  std::string_view text_;
  std::size_t begin_, at_;
  std::string name_;  // in lower case
  NamedValue value_;
};

}  // namespace

std::optional<NamedValue> FindNamedValue(std::string_view text, std::size_t begin, std::size_t size) {
  return ValueReader(text, begin, size).Read();
}

}  // namespace dtrun

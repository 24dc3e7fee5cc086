#include "core/spec/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/options/text.h"

namespace dtrun::spec {
namespace {

// toml++ limits the depth of values but not of dotted keys, and destroys its tables recursively:
// "a.a.a.…" could overflow the stack.
constexpr int kMaxKeyParts = 16;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kWhitespace = " \t";

bool IsAscii(char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; }

bool BeginsName(char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '"' || c == '\''; }

Position PositionAt(std::string_view text, std::size_t offset) {
  Position at{1, 1};
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      at = {at.line + 1, 1};
    } else if (!IsContinuation(c)) {
      ++at.column;
    }
  }
  return at;
}

SyntaxError NotUtf8(std::string_view text, std::size_t offset) {
  const bool wide = text.substr(0, 2) == "\xff\xfe" || text.substr(0, 2) == "\xfe\xff";
  return {PositionAt(text, offset),
          fmt::format("byte 0x{:02x} at offset {} is not UTF-8{}; save the file as UTF-8",
                      static_cast<unsigned>(static_cast<unsigned char>(text[offset])), offset,
                      wide ? " (this looks like UTF-16)" : "")};
}

// One pass over UTF-8 text that distinguishes strings and comments from the rest. In invalid TOML it may
// diverge from toml++, which has stopped by then.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::variant<std::string, SyntaxError> Run() {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    while (at_ < text_.size() && !error_) Step();
    if (error_) return *std::move(error_);
    out_ += text_.substr(copied_);
    return std::move(out_);
  }

 private:
  void Step() {
    const char c = text_[at_];
    const bool begins = std::exchange(line_begins_, line_begins_ && kWhitespace.find(c) != std::string::npos);
    switch (c) {
      case '"':
      case '\'': return String();
      case '#': at_ = std::min(text_.find('\n', at_), text_.size()); return;
      case '.':
        if (++dots_ >= kMaxKeyParts) Fail(at_, fmt::format("key with more than {} parts", kMaxKeyParts));
        break;
      case '\n':
        line_begins_ = depth_ == 0;
        dots_ = 0;
        break;
      case '=':
      case ',': dots_ = 0; break;
      case '[':
        dots_ = 0;
        if (begins) return Header();
        ++depth_;
        break;
      case '{':
        dots_ = 0;
        ++depth_;
        break;
      case ']':
      case '}': depth_ = std::max(depth_ - 1, 0); break;
      default:
        if (!IsAscii(c)) return NotQuoted();
    }
    ++at_;
  }

  // A "[" at the start of a line, outside any value: skips to the first character of the table's
  // name.
  void Header() {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '[') ++at_;
    at_ = std::min(text_.find_first_not_of(kWhitespace, at_), text_.size());
    if (at_ == text_.size() || BeginsName(text_[at_])) {
      depth_ = 1;  // until the closing bracket
      return;
    }
    const std::string_view character = text_.substr(at_, CharacterSize(text_[at_]));
    if (character == "]" || character == "\r" || character == "\n")
      return Fail(at_, "syntax error in table header: the table has no name");
    Fail(at_, fmt::format("syntax error in table header: a name that begins with {} needs quotes",
                          options::Quote(character)));
  }

  void NotQuoted() {
    const std::string_view character = text_.substr(at_, CharacterSize(text_[at_]));
    Fail(at_, fmt::format("syntax error: {} is outside of a string; put quotes around the key or the "
                          "value that it belongs to",
                          options::Quote(character)));
  }

  void String() {
    const char quote = text_[at_];
    const std::string triple(3, quote);
    const bool multiline = text_.substr(at_, 3) == triple;
    std::size_t i = at_ + (multiline ? 3 : 1);
    for (; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        i = multiline ? BehindEscape(i + 1) : i + 1;
        if (error_) return;
      } else if (multiline) {
        if (text_.substr(i, 3) != triple) continue;
        // The string may end in one or two quotes of its own.
        at_ = std::min(text_.find_first_not_of(quote, i + 3), std::min(i + 5, text_.size()));
        return;
      } else if (text_[i] == quote || text_[i] == '\n') {
        at_ = i + (text_[i] == quote ? 1 : 0);
        return;
      }
    }
    at_ = text_.size();
  }

  // In a multi-line string: `i` is just after a backslash. Returns the last offset of the escaped text.
  std::size_t BehindEscape(std::size_t i) {
    if (i >= text_.size()) return i;
    if (!IsAscii(text_[i])) {
      Fail(i, "syntax error in string: a backslash before a character that needs none");
      return i;
    }
    const std::size_t line_end = text_.find_first_not_of(" \t\r", i);
    if (line_end == std::string::npos || text_[line_end] != '\n') return i;
    // The string continues at the next non-blank; toml++ treats it as blank if it is not ASCII.
    const std::size_t next = text_.find_first_not_of(" \t\r\n", line_end);
    if (next == std::string::npos) return text_.size();
    if (IsAscii(text_[next])) return next - 1;
    const Character character = FirstCharacter(text_.substr(next));
    out_ += text_.substr(copied_, next - copied_);
    out_ += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(character.code));  // a TOML string escape
    copied_ = next + character.size;
    return copied_ - 1;
  }

  void Fail(std::size_t at, std::string message) { error_ = {PositionAt(text_, at), std::move(message)}; }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool line_begins_ = true;  // only blanks so far on this line, outside any value
  int depth_ = 0;            // of nested brackets
  int dots_ = 0;             // in the current key
  std::string out_;
  std::size_t copied_ = 0;  // this much of the text is in out_
  std::optional<SyntaxError> error_;
};

}  // namespace

std::variant<std::string, SyntaxError> Screen(std::string_view text) {
  const std::size_t invalid = options::FindInvalidUtf8(text);
  if (invalid != text.npos) return NotUtf8(text, invalid);
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    return SyntaxError{PositionAt(text, nul), fmt::format("a NUL byte at offset {}; remove it", nul)};
  return Scanner(text).Run();
}

}  // namespace dtrun::spec

#include "core/spec/document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/text.h"
#include "core/options/text.h"

namespace dtrun::spec {
namespace {

constexpr int kMaxDepth = 64;

Position PositionOf(const toml::source_position& at) {
  return {static_cast<int>(at.line), static_cast<int>(at.column)};
}

std::string DateText(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_chronological<decltype(value)>) out << value.get();
  });
  return out.str();
}

// False if the document is nested deeper than kMaxDepth.
bool Copy(const toml::node& from, int depth, Node& to) {
  if (depth > kMaxDepth) return false;
  to.at = PositionOf(from.source().begin);
  if (const toml::table* table = from.as_table()) {
    to.kind = Node::Kind::kTable;
    for (const auto& [key, value] : *table) {
      to.members.push_back({std::string(key.str()), PositionOf(key.source().begin), {}});
      if (!Copy(value, depth + 1, to.members.back().value)) return false;
    }
    std::stable_sort(to.members.begin(), to.members.end(), [](const Member& a, const Member& b) {
      return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
    });
  } else if (const toml::array* array = from.as_array()) {
    to.kind = Node::Kind::kList;
    for (const toml::node& item : *array) {
      if (!Copy(item, depth + 1, to.items.emplace_back())) return false;
    }
  } else if (const auto* text = from.as_string()) {
    to.kind = Node::Kind::kString;
    to.text = text->get();
  } else if (const auto* number = from.as_integer()) {
    to.kind = Node::Kind::kInt;
    to.number = number->get();
  } else if (const auto* real = from.as_floating_point()) {
    to.kind = Node::Kind::kFloat;
    to.real = real->get();
  } else if (const auto* flag = from.as_boolean()) {
    to.kind = Node::Kind::kBool;
    to.flag = flag->get();
  } else {
    to.kind = Node::Kind::kDate;
    to.text = DateText(from);
  }
  return true;
}

// "Error while parsing key: ..." becomes "syntax error in key: ...".
SyntaxError FromToml(const toml::parse_error& error) {
  static constexpr std::string_view kOpening = "Error while parsing ";
  std::string_view text = error.description();
  std::string message = "syntax error: ";
  if (text.substr(0, kOpening.size()) == kOpening) {
    text.remove_prefix(kOpening.size());
    message = "syntax error in ";
  }
  if (text.find("TOML_MAX_NESTED_VALUES") != text.npos)
    return {PositionOf(error.source().begin), fmt::format("values nested deeper than {} levels", kMaxDepth)};
  // toml++'s message for a string that is not closed on its line.
  const bool open = text.find("in string: ") != text.npos || text.starts_with("string: ");
  if (open && text.find("control characters") != text.npos) text = "string: the line ends inside it";
  return {PositionOf(error.source().begin), message.append(text)};
}

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

std::variant<Node, SyntaxError> ParseToml(std::string_view text) {
  std::variant<std::string, SyntaxError> screened = Screen(text);
  if (auto* refused = std::get_if<SyntaxError>(&screened)) return std::move(*refused);
  try {
    const toml::table table = toml::parse(std::get<std::string>(screened));
    Node root;
    if (Copy(table, 0, root)) return root;
    return SyntaxError{{}, fmt::format("values nested deeper than {} levels", kMaxDepth)};
  } catch (const toml::parse_error& error) {
    return FromToml(error);
  } catch (const std::exception& error) {
    return SyntaxError{{}, error.what()};
  }
}

std::optional<Node> ParseTomlValue(std::string_view text) {
  std::variant<Node, SyntaxError> parsed = ParseToml(fmt::format("value = {}", text));
  Node* root = std::get_if<Node>(&parsed);
  // More than one member: `text` continued on another line after the value.
  if (root == nullptr || root->members.size() != 1 || root->members[0].key != "value") return std::nullopt;
  return std::move(root->members[0].value);
}

std::string RealText(double real) {
  const bool whole = std::isfinite(real) && std::trunc(real) == real && std::abs(real) < 1e15;
  return whole ? fmt::format("{:.1f}", real) : fmt::format("{}", real);
}

std::string FoundText(const Node& node, bool secret) {
  switch (node.kind) {
    case Node::Kind::kTable: return "a table";
    case Node::Kind::kList: return "a list";
    case Node::Kind::kString: return secret ? "a string" : "string " + options::QuoteShort(node.text);
    case Node::Kind::kInt: return secret ? "an integer" : fmt::format("integer {}", node.number);
    case Node::Kind::kFloat: return secret ? "a number" : "number " + RealText(node.real);
    case Node::Kind::kBool: return secret ? "a bool" : node.flag ? "true" : "false";
    case Node::Kind::kDate: return secret ? "a date" : "date " + node.text;
  }
  return "a value";
}

std::variant<std::string, SyntaxError> Screen(std::string_view text) {
  const std::size_t invalid = options::FindInvalidUtf8(text);
  if (invalid != text.npos) return NotUtf8(text, invalid);
  if (const std::size_t nul = text.find('\0'); nul != text.npos)
    return SyntaxError{PositionAt(text, nul), fmt::format("a NUL byte at offset {}; remove it", nul)};
  return Scanner(text).Run();
}

}  // namespace dtrun::spec

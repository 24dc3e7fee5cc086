#include "core/config/document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/secrets.h"
#include "core/option/text.h"

namespace dtrun::config {
namespace {

// toml++ bounds the depth of values but not of dotted keys, and destroys its tables
// recursively: "a.a.a.…" could run out of stack.
constexpr int kMaxKeyParts = 16;
constexpr int kMaxDepth = 64;

using Reading = std::variant<Node, SyntaxError>;

Position PositionOf(const toml::source_position& at) {
  return {static_cast<int>(at.line), static_cast<int>(at.column)};
}

Position PositionAt(std::string_view text, std::size_t offset) {
  Position at{1, 1};
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      at = {at.line + 1, 1};
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++at.column;
    }
  }
  return at;
}

// The offset behind the string that opens at `at`, which holds a quote.
std::size_t SkipString(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool multiline = text.substr(at, 3) == triple;
  for (std::size_t i = at + (multiline ? 3 : 1); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (multiline) {
      // The string may end in one or two quotes of its own.
      if (text.substr(i, 3) == triple)
        return std::min(text.find_first_not_of(quote, i + 3), std::min(i + 5, text.size()));
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// The offset of a key with more than kMaxKeyParts parts, or npos.
std::size_t FindDeepKey(std::string_view text) {
  int dots = 0;
  for (std::size_t i = 0; i < text.size();) {
    switch (text[i]) {
      case '"':
      case '\'': i = SkipString(text, i); continue;
      case '#': i = std::min(text.find('\n', i), text.size()); continue;
      case '.':
        if (++dots >= kMaxKeyParts) return i;
        break;
      case '\n':
      case '=':
      case ',':
      case '{':
      case '[': dots = 0; break;
      default: break;
    }
    ++i;
  }
  return text.npos;
}

std::string DateText(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_chronological<decltype(value)>) out << value.get();
  });
  return out.str();
}

// False when the document is nested deeper than kMaxDepth.
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
  return {PositionOf(error.source().begin), message.append(text)};
}

SyntaxError NotUtf8(std::string_view text, std::size_t offset) {
  const bool wide = text.substr(0, 2) == "\xff\xfe" || text.substr(0, 2) == "\xfe\xff";
  return {PositionAt(text, offset),
          fmt::format("byte 0x{:02x} at offset {} is not UTF-8{}; save the file as UTF-8",
                      static_cast<unsigned>(static_cast<unsigned char>(text[offset])), offset,
                      wide ? " (this looks like UTF-16)" : "")};
}

}  // namespace

std::variant<Node, SyntaxError> ParseToml(std::string_view text) {
  const std::size_t invalid = option::FindInvalidUtf8(text);
  if (invalid != text.npos) return NotUtf8(text, invalid);
  const std::size_t deep = FindDeepKey(text);
  if (deep != text.npos) {
    return SyntaxError{PositionAt(text, deep), fmt::format("key with more than {} parts", kMaxKeyParts)};
  }
  try {
    const toml::table table = toml::parse(text);
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
  // More than one member: `text` went on behind the value, on another line.
  if (root == nullptr || root->members.size() != 1 || root->members[0].key != "value") return std::nullopt;
  return std::move(root->members[0].value);
}

std::string FoundText(const Node& node, bool secret) {
  switch (node.kind) {
    case Node::Kind::kTable: return "a table";
    case Node::Kind::kList: return "a list";
    case Node::Kind::kString:
      return secret ? "a string" : "string " + option::QuoteShort(MaskText(node.text));
    case Node::Kind::kInt: return secret ? "an integer" : fmt::format("integer {}", node.number);
    case Node::Kind::kFloat: return secret ? "a number" : fmt::format("number {}", node.real);
    case Node::Kind::kBool: return secret ? "a bool" : node.flag ? "true" : "false";
    case Node::Kind::kDate: return secret ? "a date" : "date " + node.text;
  }
  return "a value";
}

}  // namespace dtrun::config

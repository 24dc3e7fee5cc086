#include "core/spec/document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/spec/screen.h"
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

}  // namespace dtrun::spec

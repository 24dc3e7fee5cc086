// Parsed TOML as plain data with positions. Only this part uses toml++.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dtrun::spec {

// Counted from 1, columns in characters; 0 when unknown.
struct Position {
  int line = 0;
  int column = 0;
};

struct Member;

// One TOML value. Only the member for its `kind` is filled.
struct Node {
  enum class Kind { kTable, kList, kString, kInt, kFloat, kBool, kDate };
  Kind kind = Kind::kTable;
  Position at;
  bool flag = false;
  std::int64_t number = 0;
  double real = 0;
  std::string text;  // string, date
  std::vector<Node> items;
  std::vector<Member> members;  // in file order
};

struct Member {
  std::string key;
  Position at;  // of the key
  Node value;
};

struct SyntaxError {
  Position at;
  std::string message;
};

// In the notation of a config: "2.0".
std::string RealText(double real);

// The root table or the first error. `text` may contain any bytes.
std::variant<Node, SyntaxError> ParseToml(std::string_view text);

// One value as it may follow "key =", or nullopt if `text` is not exactly one value.
std::optional<Node> ParseTomlValue(std::string_view text);

// `string "two"`, "integer 4", "a list": for messages. `secret` omits the value.
std::string FoundText(const Node& node, bool secret = false);

// Screens untrusted text before toml++ parses it and rejects or rewrites what toml++ does not check. toml++
// 3.3 asserts in parse_key, or has undefined behaviour without assertions. It also mistakes most non-ASCII
// characters for whitespace.
//
// Pure; any thread.

// Returns equivalent text that is safe to parse, or the first error: invalid TOML, or nesting that would use
// too much stack.
std::variant<std::string, SyntaxError> Screen(std::string_view text);

}  // namespace dtrun::spec

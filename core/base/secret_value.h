// Where secrets stand in a text: the value that it assigns to a name, "x=1", "--x 1", "x: 1", `"x": "1"`, `x
// = "1"`, as written by shells, JSON, YAML, TOML, .ini files, HTTP headers and connection strings; and what
// has a format set by its issuer: tokens, JSON web tokens, webhook URLs.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

struct NamedValue {
  std::size_t begin = 0;  // after the opening quote
  std::size_t size = 0;   // up to its closing quote
  char sign = 0;          // the separator: '=', ':', or ' ' after an option
  bool spaced = false;    // "name = value"
  bool quoted = false;
};

// The value of the name at `begin` of the text, which has `size` characters; nullopt if it has none.
std::optional<NamedValue> FindNamedValue(std::string_view text, std::size_t begin, std::size_t size);

// A secret near the start of a text: `size` characters, after `kept` characters that stay visible.
struct SecretSpan {
  std::size_t kept = 0;
  std::size_t size = 0;
};
// The secret at the start of `text`, if it has an issuer's format. Call it at the start of each word.
std::optional<SecretSpan> FindSecretForm(std::string_view text);

}  // namespace dtrun

// Finds the value that a text assigns to a name: "x=1", "--x 1", "x: 1", `"x": "1"`, `x = "1"`, as written by
// shells, JSON, YAML, TOML, .ini files, HTTP headers and connection strings.
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

}  // namespace dtrun

// Where a text gives a name its value: "x=1", "--x 1", "x: 1", `"x": "1"`, `x = "1"`, as shells, JSON, YAML,
// TOML, .ini files, HTTP's headers and connection strings write it.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

struct NamedValue {
  std::size_t begin = 0;  // behind its quote
  std::size_t size = 0;   // up to its closing quote
  char sign = 0;          // that stands between: '=', ':', or ' ' behind an option
  bool spaced = false;    // "name = value"
  bool quoted = false;
};

// The value of the name that stands at `begin` of the text and has `size` letters; nothing when it has none.
std::optional<NamedValue> FindNamedValue(std::string_view text, std::size_t begin, std::size_t size);

}  // namespace dtrun

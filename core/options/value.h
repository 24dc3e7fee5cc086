// The value of an option and where it came from.
//
// Values; any thread. Durations are held in nanoseconds, sizes in bytes, enums, words of a
// count and a single name as their text, paths absolute.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/options/spec.h"

namespace dtrun::options {

struct Origin {
  int kind = DTRUN_ORIGIN_DEFAULT;
  std::string place;  // "train.toml:14:3", "DTRUN_CONFIG_BACKEND_NAME", "--set backend.name"
};

using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>,
                          std::map<std::string, std::string>>;

struct Value {
  Data data;  // monostate: unset
  Origin origin;
  bool set() const { return data.index() != 0; }
};

// Reads `text` in the spelling of the spec's type (as in default_text) and checks bounds
// and choices. Lists are written "a,b" and tables "A=1,B=2", with blanks around an item
// dropped. Relative paths are taken from `folder`, which is absolute. The error says what
// was expected and what was found, without place or key.
Result<Data> ParseText(const Spec& spec, std::string_view text, const std::filesystem::path& folder);

// Checks bounds and choices of data that already has the spec's type, and that texts are
// UTF-8 without a NUL, so that they can be arguments, variables and JSON.
Status CheckBounds(const Spec& spec, const Data& data);

// For messages and tables, as one would write it in TOML: 4, "gloo", "60s", ["a", "b"].
// "unset" when there is no value, "(secret)" instead of a secret one,
// and of secrets in commands, variables and addresses as far as they are known (core/base/secrets.h).
std::string Format(const Spec& spec, const Data& data);

}  // namespace dtrun::options

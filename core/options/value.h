// The value of an option and its origin.
//
// Values; any thread. Durations are in nanoseconds, sizes in bytes. Enums, words of a count and
// single names are text. Paths are absolute.
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

// Parses `text` in the notation of the spec's type (as in default_text) and checks bounds and
// choices. Lists are written "a,b" and tables "A=1,B=2"; blanks around an item are dropped.
// Relative paths are resolved against `folder`, which is absolute. The error contains the expected
// and the actual value, without place or key.
Result<Data> ParseText(const Spec& spec, std::string_view text, const std::filesystem::path& folder);

// Checks bounds and choices of data that already has the spec's type. Also checks that texts are
// UTF-8 without NUL, so that they can be arguments, variables and JSON.
Status CheckBounds(const Spec& spec, const Data& data);

// The value in TOML notation, for messages and tables: 4, "gloo", "60s", ["a", "b"]. "unset" if there is no
// value. "(secret)" replaces a secret, and also known secrets inside commands, variables and URLs
// (core/base/secrets.h).
std::string Format(const Spec& spec, const Data& data);

// The displayed form of an option's value, for TOML and JSON output.
//
// Pure; any thread.

// Converts durations and sizes to text: "60s", "64KiB". Replaces a secret by "(secret)", and also known
// secrets inside commands, variables and URLs (core/base/secrets.h). Unset stays unset.
Data Shown(const Spec& spec, Data data);

}  // namespace dtrun::options

// Reads and writes dtrun's JSON; keys keep their order. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace dtrun {

using Json = nlohmann::ordered_json;

// Returns a discarded value (is_discarded()) if `text` is not JSON. Values nested deeper than 64 levels are
// omitted, because nlohmann's functions recurse once per level.
Json ParseJson(std::string_view text);

// JSON on one line, without the line feed. Invalid UTF-8, which paths and rank output may contain, becomes
// U+FFFD, where dump() alone throws.
std::string JsonLine(const Json& json);

// Like JsonLine, but indented, for files and people; ends with a line feed.
std::string JsonText(const Json& json);

// JsonText of an object for other programs. Its first member, `schema`, is the version of its layout.
// Increase it when a member is removed, renamed or changes its meaning, not when one is added
// (docs/stability.md).
std::string JsonDocument(int schema, const Json& members);

}  // namespace dtrun

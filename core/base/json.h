// The JSON that dtrun reads and writes: keys keep their order. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace dtrun {

using Json = nlohmann::ordered_json;

// Discarded (is_discarded()) when `text` is no JSON. What is nested deeper than 64 levels is left out: nobody
// writes that to be read, and nlohmann's functions call themselves for each level.
Json ParseJson(std::string_view text);

// In one line, without its end. Bytes of strings that are no UTF-8, of paths and of what ranks print, become
// U+FFFD, where dump() alone throws.
std::string JsonLine(const Json& json);

// JsonLine's, indented, for files and people; ends its last line.
std::string JsonText(const Json& json);

// JsonText of an object for other programs; the version of its layout is its first member, `schema`. Increase
// it when a member goes, gets another name or another meaning, not when one is new (docs/stability.md).
std::string JsonDocument(int schema, const Json& members);

}  // namespace dtrun

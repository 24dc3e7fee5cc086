// Encodes byte strings, such as arguments and variables, in JSON, which holds UTF-8 only. Pure; any thread.
//
// The To functions throw Json::exception on a wrong type.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace dtrun::plugin::wire {

// Maps each byte to the character of that number; UTF-8 has all 256.
std::string ToCharacters(std::string_view bytes);
// The inverse. Characters above 255, which only a broken child sends, give arbitrary bytes.
std::string ToBytes(std::string_view text);

Json FromTexts(const std::vector<std::string>& texts);
std::vector<std::string> ToTexts(const Json& json);

// An array of pairs, because object keys must also be UTF-8.
Json FromMap(const std::map<std::string, std::string>& map);
std::map<std::string, std::string> ToMap(const Json& json);

std::string TextAt(const Json& json, const char* key);

}  // namespace dtrun::plugin::wire

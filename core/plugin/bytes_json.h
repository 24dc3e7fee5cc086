// Texts that are bytes, as arguments and variables are, in JSON, which holds UTF-8 only. Pure; any thread.
//
// The To functions throw Json::exception at what is of another type.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace dtrun::plugin::wire {

// Each byte as the character of that number, which UTF-8 has for all 256.
std::string ToCharacters(std::string_view bytes);
// Of characters beyond 255 something is made; only a broken child sends them.
std::string ToBytes(std::string_view text);

Json FromTexts(const std::vector<std::string>& texts);
std::vector<std::string> ToTexts(const Json& json);

// Pairs, for the keys of an object must be UTF-8 as well.
Json FromMap(const std::map<std::string, std::string>& map);
std::map<std::string, std::string> ToMap(const Json& json);

std::string TextAt(const Json& json, const char* key);

}  // namespace dtrun::plugin::wire

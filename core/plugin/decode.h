// Decodes a line of the probe's protocol to a value or an error. Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/base/json.h"
#include "core/base/result.h"

namespace dtrun::plugin::wire {

// Parses `line` and passes the object under `key` to `read`; converts JSON exceptions to errors.
template <class T, class Read>
Result<T> Decode(std::string_view line, const char* key, Read&& read) {
  try {
    const Json json = ParseJson(line);
    if (json.contains("error")) {
      const Json& error = json.at("error");
      return Error{error.at("code").get<dtrun_status>(), error.at("text").get<std::string>(),
                   error.at("peer").get<int>()};
    }
    return read(json.at(key));
  } catch (const Json::exception& error) {
    return Error{DTRUN_INTERNAL, fmt::format("a plugin probe sent an invalid answer: {}", error.what())};
  }
}

// Whether `line` is an object with the request `key`.
inline bool Asks(std::string_view line, const char* key) {
  const Json json = ParseJson(line);
  return json.is_object() && json.contains(key);
}

}  // namespace dtrun::plugin::wire

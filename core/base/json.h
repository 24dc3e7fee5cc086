// JSON as text, whatever its strings hold: bytes that are no UTF-8, of paths and of what ranks print, become
// U+FFFD, where dump() alone throws. `Json` is nlohmann's. Pure; any thread.
#pragma once

#include <string>

namespace dtrun {

// In one line, without its end.
template <class Json>
std::string JsonLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Indented, for files and people; ends its last line.
template <class Json>
std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dtrun

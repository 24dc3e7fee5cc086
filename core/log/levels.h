// Which diagnostics are kept: a level for all rooms, and levels of some, as DTRUN_LOG gives them.
//
// A room is a folder of core, or a plugin by its name. Values and pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::log {

enum class Level { kDebug = 1, kInfo, kWarn, kError, kOff };  // in order; the first four as DTRUN_LOG_* of the ABI

std::string_view Name(Level level);  // "debug", "info", "warn", "error", "off"

struct Levels {
  Level others = Level::kWarn;  // of the rooms that `rooms` does not name
  std::map<std::string, Level, std::less<>> rooms = {};

  Level Of(std::string_view room) const;
  Level Lowest() const;
  bool operator==(const Levels&) const = default;
};

// "info", "network=debug", "info,network=debug,gloo=off"; white space around a part is skipped, and an empty text
// keeps warnings and errors. An error names the part that is wrong. Any word is taken for a room: see UnknownRooms.
Result<Levels> ParseLevels(std::string_view text);
std::string ToText(const Levels& levels);  // as ParseLevels takes it

// Of the rooms that `levels` names, one sentence for each that is neither a room of core nor one of `plugins`.
std::vector<std::string> UnknownRooms(const Levels& levels, const std::vector<std::string>& plugins);

}  // namespace dtrun::log

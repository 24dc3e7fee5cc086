// The diagnostics to keep: a default level and levels of some rooms, as set in DTRUN_LOG.
//
// A room is a folder of core, or a plugin's name. Values and pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::log {

enum class Level {
  kDebug = 1,
  kInfo,
  kWarn,
  kError,
  kOff
};  // ascending; the first four as DTRUN_LOG_* of the ABI

std::string_view Name(Level level);  // "debug", "info", "warn", "error", "off"

struct Levels {
  Level others = Level::kWarn;  // for rooms that are not in `rooms`
  std::map<std::string, Level, std::less<>> rooms = {};

  Level Of(std::string_view room) const;
  Level Lowest() const;
  bool operator==(const Levels&) const = default;
};

// "info", "network=debug", "info,network=debug,gloo=off". Spaces around a part are ignored; an empty text
// keeps warnings and errors. The error names the invalid part. Any word is accepted as a room: see
// UnknownRooms.
Result<Levels> ParseLevels(std::string_view text);
std::string ToText(const Levels& levels);  // in the syntax of ParseLevels

// The value of a variable as errors show it: at most 60 bytes, control characters escaped.
std::string Shortened(std::string_view text);

// A sentence for each room in `levels` that is neither a room of core nor one of `plugins`.
std::vector<std::string> UnknownRooms(const Levels& levels, const std::vector<std::string>& plugins);

}  // namespace dtrun::log

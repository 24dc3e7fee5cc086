#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/text.h"
#include "core/log/log.h"

namespace dtrun::log {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warn", "error", "off"};
// The folders of core that write diagnostics.
constexpr std::array<std::string_view, 5> kRooms{"comm", "job", "membership", "node", "plugin"};

std::optional<Level> LevelNamed(std::string_view text) {
  const std::string lower = Lowercase(text);
  const auto* const name = std::ranges::find(kNames, lower == "warning" ? "warn" : lower);
  if (name == kNames.end()) return std::nullopt;
  return static_cast<Level>(name - kNames.begin() + 1);
}

Error NotALevel(std::string_view text, std::string_view part) {
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "'{}' in '{}' is no level: expected debug, info, warn, error or off, or a part and its "
                   "level such as node=debug",
                   Shortened(part), Shortened(text));
}

}  // namespace

std::string Shortened(std::string_view text) {
  constexpr std::size_t kMost = 60;
  return Printable(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

std::string_view Name(Level level) { return kNames[static_cast<std::size_t>(level) - 1]; }

Level Levels::Of(std::string_view room) const {
  const auto own = rooms.find(room);
  return own == rooms.end() ? others : own->second;
}

Level Levels::Lowest() const {
  Level lowest = others;
  for (const auto& [room, level] : rooms) lowest = std::min(lowest, level);
  return lowest;
}

Result<Levels> ParseLevels(std::string_view text) {
  Levels levels;
  if (Trim(text).empty()) return levels;
  for (const std::string_view each : Split(text, ',')) {
    const std::string_view part = Trim(each);
    const std::size_t equals = part.find('=');
    const std::string_view word = equals == part.npos ? part : Trim(part.substr(equals + 1));
    const std::optional<Level> level = LevelNamed(word);
    if (!level) return NotALevel(text, part);
    if (equals == part.npos) {
      levels.others = *level;
      continue;
    }
    const std::string_view room = Trim(part.substr(0, equals));
    if (room.empty()) return NotALevel(text, part);
    levels.rooms.insert_or_assign(std::string(room), *level);
  }
  return levels;
}

std::string ToText(const Levels& levels) {
  std::string text(Name(levels.others));
  for (const auto& [room, level] : levels.rooms) text += fmt::format(",{}={}", room, Name(level));
  return text;
}

std::vector<std::string> UnknownRooms(const Levels& levels, const std::vector<std::string>& plugins) {
  std::vector<std::string> known(kRooms.begin(), kRooms.end());
  known.insert(known.end(), plugins.begin(), plugins.end());
  std::vector<std::string> told;
  for (const auto& [room, level] : levels.rooms) {
    if (std::ranges::find(known, room) != known.end()) continue;
    const std::optional<std::string> near = Nearest(room, known);
    told.push_back(
        fmt::format("no part of dtrun is called '{}'; {}", room,
                    near ? fmt::format("did you mean {}?", *near)
                         : fmt::format("there are {} and the plugins by name", fmt::join(kRooms, ", "))));
  }
  return told;
}

}  // namespace dtrun::log

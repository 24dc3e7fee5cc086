// The ports at which ranks may listen, as dtrun tells its ranks: DTRUN_PORT_RANGE, "FIRST-LAST".
//
// Pure but for FirstOfRange; any thread.
#pragma once

#include <cstdio>
#include <optional>
#include <random>

namespace dtrun::gloo_plugin {

struct PortRange {
  int first = 0, last = 0;
};

// nullopt: `text` is null or no range of ports.
inline std::optional<PortRange> ReadPortRange(const char* text) {
  PortRange range;
  char rest = 0;
  if (text == nullptr || std::sscanf(text, "%5d-%5d%c", &range.first, &range.last, &rest) != 2)
    return std::nullopt;
  if (range.first < 1 || range.first > range.last || range.last > 65535) return std::nullopt;
  return range;
}

// Where a search in `count` ports begins: anywhere, so that ranks that start together seldom meet.
inline int FirstOfRange(int count) {
  std::random_device random;
  return std::uniform_int_distribution<int>(0, count - 1)(random);
}

}  // namespace dtrun::gloo_plugin

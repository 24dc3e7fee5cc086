#include "port_range.h"

#include <cstdio>
#include <random>

namespace dtrun::gloo_plugin {

std::optional<PortRange> ReadPortRange(const char* text) {
  PortRange range;
  char rest = 0;
  if (text == nullptr || std::sscanf(text, "%5d-%5d%c", &range.first, &range.last, &rest) != 2)
    return std::nullopt;
  if (range.first < 1 || range.first > range.last || range.last > 65535) return std::nullopt;
  return range;
}

int FirstOfRange(int count) {
  std::random_device random;
  return std::uniform_int_distribution<int>(0, count - 1)(random);
}

}  // namespace dtrun::gloo_plugin

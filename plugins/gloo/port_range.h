// The ports at which ranks may listen, as dtrun tells its ranks: DTRUN_PORT_RANGE, "FIRST-LAST".
//
// Pure but for FirstOfRange; any thread.
#pragma once

#include <optional>

namespace dtrun::gloo_plugin {

struct PortRange {
  int first = 0, last = 0;
};

// nullopt: `text` is null or no range of ports.
std::optional<PortRange> ReadPortRange(const char* text);

// Where a search in `count` ports begins: anywhere, so that ranks that start together seldom meet.
int FirstOfRange(int count);

}  // namespace dtrun::gloo_plugin

// The one grammar of hosts and of what may follow them, for every option, variable and platform: a name, an
// IPv4 address or an IPv6 address, then a colon and a port or a number of slots.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun {

// Whether `text` is an IPv6 address without brackets; a zone ("%eth0") may follow it.
bool IsIpv6(std::string_view text);

struct HostParts {
  std::string host;                  // without brackets; "user@" may stand before it
  std::optional<std::string> after;  // what follows the colon
  bool bracketed = false;
};
// "node0", "node0:4", "fd00::2", "[fd00::2]", "[fd00::2]:4", each after an optional "user@". An IPv6 address
// without brackets is the host as a whole. The host's name and what follows it are not checked.
Result<HostParts> SplitHost(std::string_view text);

struct Endpoint {
  std::string host;
  std::optional<int> port;  // unset: not given
  bool operator==(const Endpoint&) const = default;
};
// A host and, after a colon, a port from `least` to 65535.
Result<Endpoint> ParseEndpoint(std::string_view text, int least = 1);

// "fd00::2" in brackets; anything else as it is.
std::string Bracketed(const std::string& host);
// "10.0.0.1:80", "[fe80::1]:80".
std::string EndpointText(const std::string& host, const std::string& port);

}  // namespace dtrun

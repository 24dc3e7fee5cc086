// The single grammar for hosts in every option, variable and platform: a name, an IPv4 address or an IPv6
// address, optionally followed by a colon and a port or a number of slots.
//
// Pure functions; any thread.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun {

// Whether `text` is an IPv6 address without brackets; a zone ("%eth0") may follow it.
bool IsIpv6(std::string_view text);

struct HostParts {
  std::string host;                  // without brackets; may begin with "user@"
  std::optional<std::string> after;  // what follows the colon
  bool bracketed = false;
};
// "node0", "node0:4", "fd00::2", "[fd00::2]", "[fd00::2]:4", each after an optional "user@". An IPv6 address
// without brackets is taken as the host alone. The host name and the text after the colon are not validated.
Result<HostParts> SplitHost(std::string_view text);

struct Endpoint {
  std::string host;
  std::optional<int> port;  // unset: not given
  bool operator==(const Endpoint&) const = default;
};
// Parses a host, optionally with a colon and a port from `least` to 65535.
Result<Endpoint> ParseEndpoint(std::string_view text, int least = 1);

// Puts brackets around an IPv6 address; returns any other text unchanged.
std::string Bracketed(const std::string& host);
// "10.0.0.1:80", "[fe80::1]:80".
std::string EndpointText(const std::string& host, const std::string& port);

// The ports that this process listens on when none is configured: a range that the site's firewall admits
// (cluster.port_range), else an ephemeral port.
//
// Set once, before anything listens; afterwards any thread may read it.
struct PortRange {
  int first = 0;
  int last = 0;  // 0: no range
};

// "40000-40100"; an empty text means no range.
Result<PortRange> ParsePortRange(const std::string& text);
// "40000-40100"; empty if there is no range.
std::string ToText(const PortRange& range);

void UsePortRange(const PortRange& range);
PortRange UsedPortRange();

// bind(2). If the port of `address` is 0, picks a free one from the range. Returns 0 or the errno; EADDRINUSE
// also if every port of the range is taken.
int BindInRange(int socket, const sockaddr* address, socklen_t size);

// The error for `number`, returned by BindInRange while it looked for a free port. If the range is full,
// names the range and the option.
Error NoFreePort(std::string_view action, int number);

}  // namespace dtrun

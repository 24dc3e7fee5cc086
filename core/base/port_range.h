// The ports that this process listens on when none is configured: a range that the site's firewall admits
// (cluster.port_range), else an ephemeral port.
//
// Set once, before anything listens; afterwards any thread may read it.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun {

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

// The ports that this process listens on where nobody has chosen one: a range that a site's firewall lets
// through (cluster.port_range), else whatever the system gives out.
//
// Chosen once, before anything listens; then any thread.
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

// "40000-40100"; an empty text is no range.
Result<PortRange> ParsePortRange(const std::string& text);
// "40000-40100"; empty: no range.
std::string ToText(const PortRange& range);

void UsePortRange(const PortRange& range);
PortRange UsedPortRange();

// bind(2). Where the port of `address` is 0 it becomes a free one of the range. Returns 0 or the errno;
// EADDRINUSE also when every port of the range is taken.
int BindInRange(int socket, const sockaddr* address, socklen_t size);

// Why `action` failed, where BindInRange was to find a free port and returned `number`: names a range that
// is full, and the option.
Error NoFreePort(std::string_view action, int number);

}  // namespace dtrun

// The address of the control socket in an open run folder.
//
// A Unix socket's path has at most 107 bytes; a run folder may have more, so the path leads through
// /proc/self/fd (unix(7), proc(5)). Pure; any thread.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/control/messages.h"

namespace dtrun::control {

inline sockaddr_un AddressIn(int folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  *fmt::format_to_n(address.sun_path, sizeof address.sun_path - 1, "/proc/self/fd/{}/{}", folder, kSocket)
       .out = '\0';
  return address;
}

}  // namespace dtrun::control

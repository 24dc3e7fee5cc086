// Who uses a TCP port of this host, from /proc. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/error.h"

namespace dtrun {

// "port 1234 is in use by process 4242 (python3); ...": DTRUN_BUSY. Another user's process,
// or one in another container, is described where it cannot be named.
Error PortInUse(int port);

// The program that listens on the port: "dtrun"; empty when none does, or it cannot be seen.
std::string ProgramListeningOn(int port);

struct PortUser {
  pid_t pid = 0;     // 0: another user's, or a container's, that cannot be seen
  std::string text;  // "process 4242 (python3)"
};
// Who listens on the port.
std::vector<PortUser> ListenersOn(int port);

// True when nothing but connections of an earlier process, closed and fading away, keeps
// the port from being bound: SO_REUSEADDR may then be set without stealing it.
bool OnlyFading(int port);

}  // namespace dtrun

// Finds the processes that use a TCP port of this host, from /proc. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/error.h"

namespace dtrun {

// "port 1234 is in use by process 4242 (python3); ...": DTRUN_BUSY. A process of another user or
// container is described if it cannot be named.
Error PortInUse(int port);

// The program that listens on the port, such as "dtrun"; empty if there is none or it is not
// visible.
std::string ProgramListeningOn(int port);

struct PortUser {
  pid_t pid = 0;     // 0: not visible (another user's or container's process)
  std::string text;  // "process 4242 (python3)"
};
// The processes that listen on the port.
std::vector<PortUser> ListenersOn(int port);

// True if only closed connections of an earlier process (TIME_WAIT) keep the port from being bound:
// setting SO_REUSEADDR then does not steal the port.
bool OnlyFading(int port);

}  // namespace dtrun

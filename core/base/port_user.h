// The TCP sockets that the kernel lists in /proc, IPv4 and IPv6, and the processes that use a port of this
// host. Snapshots; any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
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

struct TcpSocket {
  std::string local, remote;  // address and port; one end's `local` equals the other end's `remote`
  std::uint16_t local_port = 0;
  std::uint16_t remote_port = 0;
  bool listens = false;
  ino_t inode = 0;                   // 0: no process holds it any more
  std::chrono::milliseconds over{};  // time since the connection closed (TIME_WAIT)
};

// The sockets of the network namespace of process `pid`; empty if the process does not exist.
std::vector<TcpSocket> TcpSocketsSeenBy(pid_t pid);

// Parses /proc/net/tcp or tcp6; skips malformed lines.
std::vector<TcpSocket> ParseTcpSockets(std::string_view text);

}  // namespace dtrun

// The TCP sockets that the kernel lists in /proc, IPv4 and IPv6.
//
// A snapshot; any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

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

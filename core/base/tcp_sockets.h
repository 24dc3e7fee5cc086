// The TCP sockets that the kernel lists in /proc, of both families.
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
  std::string local, remote;  // address and port; the same text where one socket's end is another's
  std::uint16_t local_port = 0;
  std::uint16_t remote_port = 0;
  bool listens = false;
  ino_t inode = 0;                   // 0: no process has it any more
  std::chrono::milliseconds over{};  // since when a connection is over that the kernel still remembers
};

// Of the network that process `pid` sees; empty when there is no such process.
std::vector<TcpSocket> TcpSocketsSeenBy(pid_t pid);

// What /proc/net/tcp or tcp6 says; lines that make no sense are left out.
std::vector<TcpSocket> ParseTcpSockets(std::string_view text);

}  // namespace dtrun

// Asks the kernel about TCP sockets of this host with sock_diag(7): which user holds the other end of a
// connection, and whether a port has a listener. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>

namespace dtrun {

struct PeerOwner {
  bool told = false;          // the kernel supports the query
  std::optional<uid_t> user;  // unset: no process holds the other end any more
};
// REQUIRES: `connection` is connected. If the other end is closed, the result has no user.
PeerOwner OwnerOfPeer(int connection);

enum class PeerUser {
  kSame,     // a process of `user` has the other end
  kAnother,  // another user has it, or it is closed
  kUnknown,  // the kernel does not support the query
};

PeerUser UserOfPeer(int connection, uid_t user);

// Also true if the kernel does not answer. /proc/net/tcp also lists established connections, and walking its
// table takes 10 ms on a machine with much memory.
bool MayHaveListener(int port);

}  // namespace dtrun

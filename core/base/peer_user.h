// Which user holds the other end of a TCP connection within this host. The answer comes from the kernel,
// never from the peer. Any thread.
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

}  // namespace dtrun

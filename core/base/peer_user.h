// Which user holds the other end of a TCP connection within this host, as the kernel knows it: nothing that
// the peer says is believed. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>

namespace dtrun {

struct PeerOwner {
  bool told = false;          // this kernel tells
  std::optional<uid_t> user;  // nothing: nobody has the other end any more
};
// `connection` is connected. Whoever has closed the other end is nobody.
PeerOwner OwnerOfPeer(int connection);

enum class PeerUser {
  kSame,     // a process of `user` has the other end
  kAnother,  // somebody else has, or nobody any more
  kUnknown,  // this kernel does not tell
};

PeerUser UserOfPeer(int connection, uid_t user);

}  // namespace dtrun

// libpmix listens on TCP, where every user of the host may connect, and parses input before it has identified
// the peer. This accept only passes on connections of this process's user, according to the kernel.
//
// Linked into dtrun-pmix itself. Its accept takes precedence over libc's for libraries that are loaded later.
// Any thread.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/peer_user.h"

// Each query to the kernel takes about 20 us. If the kernel cannot answer, all connections are accepted, as
// in plain libpmix.
extern "C" __attribute__((visibility("default"))) int accept(int listener, sockaddr* address,
                                                             socklen_t* size) {
  const int connection = ::accept4(listener, address, size, SOCK_CLOEXEC);
  if (connection < 0 || dtrun::UserOfPeer(connection, ::geteuid()) != dtrun::PeerUser::kAnother)
    return connection;
  ::close(connection);
  errno = EAGAIN;  // as if no connection had arrived
  return -1;
}

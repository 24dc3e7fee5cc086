// libpmix listens on TCP, where every user of the host may connect, and parses what comes before it knows
// from whom. It gets its connections from here: only those of this process's user, as the kernel says.
//
// Linked into dtrun-pmix itself, whose accept comes before that of libc for libraries that are opened later.
// Any thread.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/peer_user.h"

// The kernel is asked about 20 us for each. Where it does not tell, connections are as open as libpmix has
// them.
extern "C" __attribute__((visibility("default"))) int accept(int listener, sockaddr* address,
                                                             socklen_t* size) {
  const int connection = ::accept4(listener, address, size, SOCK_CLOEXEC);
  if (connection < 0 || dtrun::UserOfPeer(connection, ::geteuid()) != dtrun::PeerUser::kAnother)
    return connection;
  ::close(connection);
  errno = EAGAIN;  // as if nobody had come
  return -1;
}

// Checks with sock_diag(7) whether a TCP port of this host has a listener. /proc/net/tcp also lists
// established connections, and walking its table takes 10 ms on a machine with much memory. Any thread.
#pragma once

namespace dtrun {

// Also true if the kernel does not answer sock_diag requests.
bool MayHaveListener(int port);

}  // namespace dtrun

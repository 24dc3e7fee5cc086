// Whether a TCP port of this host has a listener, asked of the kernel by sock_diag(7): /proc/net/tcp lists
// established connections too, and walking their table takes 10 ms on a machine with much memory. Any thread.
#pragma once

namespace dtrun {

// True as well when the kernel does not answer such requests.
bool MayHaveListener(int port);

}  // namespace dtrun
